"""The Trainer Daemon: wires submit, registry, dispatch, ingest and broadcast together behind gRPC."""
