"""Names in the metadata of gRPC calls."""

ERROR_NAME = "mosaic-error"  # trailing metadata: the class in model/errors.py of the error

# Calls of a run's tailer and worker. The daemon decides by these, before it receives the message.
RUN_ID = "mosaic-run-id"
NODES_HOST = "mosaic-daemon"  # the name in the certificate of the listener for other machines
NONCE = "mosaic-nonce"  # RegisterWorker; the other calls have a session token as "authorization: Bearer <token>"
