"""The worker's voice to MOSAIC: the SDK's emitter, told which run it speaks for."""

from mosaic_sdk.emit import Emitter


class Telemetry(Emitter):
    """One line per fact on stdout. Launcher and logger speak, each with its own; lines stay whole."""
