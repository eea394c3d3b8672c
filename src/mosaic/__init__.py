"""MOSAIC: any reinforcement-learning library, each in its own process and environment, under one daemon."""

__version__ = "0.1.0"
