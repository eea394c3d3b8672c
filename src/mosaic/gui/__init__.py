"""Hop 8: the window. Models are in `mosaic.present` and `mosaic.client`; this package only draws and asks."""
