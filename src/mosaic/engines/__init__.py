"""Schedulers that start runs on other machines: their settings, and what is asked of them."""
