"""Hop 1: validates a submitted config and writes the files of the run."""

import mosaic.catalog  # noqa: F401  finds the SDK, whose names a config is checked against
