"""Option values for CPUs and memory: 4, 0.5, 512M, 16G, auto."""

import argparse
from collections.abc import Callable

from mosaic.model.machine import parse_cpus, parse_memory


def cpus(text: str) -> float:
    try:
        return parse_cpus(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def memory(text: str) -> int:
    """The memory in MB."""
    try:
        return parse_memory(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def or_auto(check: Callable[[str], object]) -> Callable[[str], str]:
    """Accept `auto` and every text that passes the check; the value is the text itself."""

    def read(text: str) -> str:
        if text != "auto":
            check(text)
        return text

    return read
