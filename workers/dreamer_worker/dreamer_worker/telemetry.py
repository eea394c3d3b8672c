"""Telemetry to MOSAIC: the SDK's emitter, with the run it reports on."""

from mosaic_sdk.emit import Emitter


class Telemetry(Emitter):
    """One JSON line per event on stdout. Launcher and logger each have one; lines are written atomically."""
