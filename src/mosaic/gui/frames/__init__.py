"""Live frames of a run."""
