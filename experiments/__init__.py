"""The paper's experiments: one file per table or figure, each from settings to rows. `python -m experiments --help`."""
