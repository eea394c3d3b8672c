"""How agents take their turns."""

from mosaic_sdk.compat.enums import SteppingParadigm

__all__ = ["SteppingParadigm"]
