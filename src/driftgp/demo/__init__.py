"""What `driftgp demo` shows on the toy stream: methods, one step ahead, scored and timed; a table and a picture."""
