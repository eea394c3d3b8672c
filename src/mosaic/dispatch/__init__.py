"""Hop 3: claim a run, start it, watch it live and die, and give back what it held."""
