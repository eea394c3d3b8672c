"""A search has no picture; its trials have their own."""

HAS_FRAMES = False
