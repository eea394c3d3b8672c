"""The import paths of workers written for the public MOSAIC: re-exports from mosaic_sdk, no code."""
