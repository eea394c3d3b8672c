"""The words all parts share. Imports nothing third-party and nothing above it."""
