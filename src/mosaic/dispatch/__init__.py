"""Hop 3: claim a run, start it, supervise it, end it, and free its resources."""
