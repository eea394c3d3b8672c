"""What decisions cost."""

from mosaic_sdk.llm.cost import cost_of

__all__ = ["cost_of"]
