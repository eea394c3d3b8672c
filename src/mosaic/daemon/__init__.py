"""The trainer daemon: connects submit, registry, dispatch, ingest and broadcast, and serves them over gRPC."""
