"""Durations as options: 90, 45s, 2h, 1h30m, 30d."""

import argparse

from mosaic.present import durations


def parse_duration(text: str) -> float:
    """The number of seconds; a number without a unit is in seconds."""
    try:
        return durations.parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
