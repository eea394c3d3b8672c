"""Hop 8: what every screen shows, as text and numbers. It knows neither a terminal nor a window."""
