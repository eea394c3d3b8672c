"""The LLM worker publishes no frames: the process that owns the environment does. This module is part of every
worker's layout (docs/howto/new-worker.md)."""
