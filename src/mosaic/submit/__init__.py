"""Hop 1: a submitted config in, a validated run and its files out."""

import mosaic.catalog  # noqa: F401  finds the SDK, whose names a config is checked against
