"""Every LOG_… name exists here."""

from mosaic_sdk.compat.log_constants import LogConstant, __getattr__

__all__ = ["LogConstant", "__getattr__"]
