"""Readers of what other programs have recorded; they know neither the daemon nor the libraries that wrote the files."""
