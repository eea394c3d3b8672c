"""The tab of one run: overview, curves, frames, log and settings."""
