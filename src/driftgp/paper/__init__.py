"""The paper's experiments: one file a table or figure, each from settings to rows. Printing is the command line's."""
