"""The hub: the async client on a thread of its own; telemetry reaches Qt as one batch per tick."""
