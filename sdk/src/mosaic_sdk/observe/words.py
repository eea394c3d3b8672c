"""The words of `observing` lines, and notes for people."""

import sys

OBSERVING = "observing"  # the event that `mosaic show` reads
METRICS, EPISODES, CHECKPOINTS = "metrics", "episodes", "checkpoints"
SETTINGS, PROGRESS = "settings", "progress"


def note(text: str) -> None:
    try:
        print("mosaic: " + text, file=sys.stderr)
    except Exception:  # noqa: BLE001  # stderr may be closed, or an object of the script's
        pass
