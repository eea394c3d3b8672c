"""Hop 2: `registry.db`, the only place where the state of a run is written."""
