"""The gRPC contract (`mosaic.proto`), its generated stubs, and the converter between them and the model."""
