"""The gRPC contract (`mosaic.proto`), its generated stubs, and the one converter between them and the model."""
