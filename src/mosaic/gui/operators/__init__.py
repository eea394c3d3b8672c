"""The operators page: evaluations by hand and by script."""
