"""What is run from a clone only: wheels and their checks, and examples in docstrings for the site."""
