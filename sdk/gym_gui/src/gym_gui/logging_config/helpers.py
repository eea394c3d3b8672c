"""Logs messages that have a code."""

from mosaic_sdk.compat.log_constants import LogConstantMixin, log_constant

__all__ = ["LogConstantMixin", "log_constant"]
