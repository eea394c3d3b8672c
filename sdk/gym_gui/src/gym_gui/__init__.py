"""The import paths of the worker guide. Re-exports from mosaic_sdk, no code."""
