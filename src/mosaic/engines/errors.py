"""What an engine may answer instead of doing what it was asked."""

from mosaic.model.errors import MosaicError


class EngineSilent(MosaicError):
    """The engine does not answer now. What was asked of it may have happened all the same."""


class EngineRefused(MosaicError):
    """The engine has answered that it will not do it."""
