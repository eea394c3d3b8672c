"""Names in the metadata of gRPC calls."""

ERROR_NAME = "mosaic-error"  # trailing metadata: the class in model/errors.py of the error
