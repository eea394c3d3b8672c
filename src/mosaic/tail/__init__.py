"""Hop 4b: the tailer, one process per run, which reads the spool, parses it and publishes it."""
