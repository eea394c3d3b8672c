"""Names in the metadata of calls."""

ERROR_NAME = "mosaic-error"  # trailing: the class in model/errors.py that a failed call raised
