"""The gRPC channel of a client."""

import grpc

MESSAGE_LIMIT = 64 * 1024 * 1024

_OPTIONS = (
    # gRPC's own backoff grows to minutes: a client would notice a restarted daemon 8-10 s late.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.use_local_subchannel_pool", 1),  # do not share: another client's connection may lead to a dead daemon
    ("grpc.enable_http_proxy", 0),  # the daemon is on this machine, even if http_proxy is set
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    ("grpc.default_authority", "localhost"),  # a socket's path is not a valid authority
)


def open_channel(target: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(target, options=_OPTIONS)
