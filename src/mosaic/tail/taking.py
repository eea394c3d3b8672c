"""Takes the launch of a run from the daemon, and writes it into the state folder of this node."""

import json
import secrets
import time
from typing import Any

import grpc

from mosaic.model import durable, node_paths
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.tail.far_daemon import FarDaemon
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub
from mosaic.wire.names import NONCE, RUN_ID

PATIENCE_S = 600.0  # with a daemon that does not answer: the job has its resources, and does nothing
CALL_LIMIT_S = 30.0
_MAY_PASS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)


class NoLaunch(Exception):
    """The daemon gives no launch, or cannot be reached."""


def take_launch(ticket: "dict[str, Any]", node: str, patience_s: float = PATIENCE_S) -> pb.TakeLaunchReply:
    request = pb.TakeLaunchRequest(
        run_id=ticket["run_id"], attempt=ticket["attempt"], taker=secrets.token_hex(16), node=node
    )
    metadata = [(RUN_ID, ticket["run_id"]), (NONCE, ticket["ticket"])]
    daemon, deadline = FarDaemon({"daemon": ticket}), time.monotonic() + patience_s
    options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 64 << 20)]
    while True:
        with daemon.channel(options) as channel:
            try:
                stub = TrainerServiceStub(channel)  # type: ignore[no-untyped-call]  # generated code
                reply: pb.TakeLaunchReply = stub.TakeLaunch(request, timeout=CALL_LIMIT_S, metadata=metadata)
                return reply
            except grpc.RpcError as error:
                _give_up_in_time(error, ticket["address"], deadline)
        daemon.note_no_answer()


def _give_up_in_time(error: grpc.RpcError, address: str, deadline: float) -> None:
    if error.code() not in _MAY_PASS:
        raise NoLaunch(error.details()) from None
    if time.monotonic() > deadline:
        raise NoLaunch(
            f"The daemon at {address} cannot be reached from this node ({error.details()}). Set `listen` or `reach` of "
            "the cluster."
        ) from None


def write_launch(reply: pb.TakeLaunchReply, root: StateRoot, run: RunDir, code: str) -> None:
    """Write the launch and the files of a run into the node's own state folder."""
    for file in reply.files:
        path = root.path / file.path
        if ".." in path.parts:
            raise NoLaunch(f"{file.path} is not a path below the state folder.")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.write_bytes(path, node_paths.settle(file.data.decode(), str(root.path), code).encode())
    launch = json.loads(node_paths.settle(reply.launch_json, str(root.path), code))
    durable.write_json(run.launch, launch)
