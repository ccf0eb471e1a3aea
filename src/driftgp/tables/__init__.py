"""Tables in and predictions out: text, workbooks, JSON lines, Parquet and standard input, in blocks of rows."""
