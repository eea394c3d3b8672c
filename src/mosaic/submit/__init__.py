"""Hop 1: a submitted config in, a validated run and its files out."""
