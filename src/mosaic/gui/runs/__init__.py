"""The runs page: the table of all runs."""
