"""Hop 4a: the holder, one process per run. It starts the worker, holds its process tree and ends it."""
