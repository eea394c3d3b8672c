"""The sheet that starts a run: forms made from a worker's schema."""
