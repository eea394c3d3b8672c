"""Hop 2: `registry.db`, the only place where run states are written."""
