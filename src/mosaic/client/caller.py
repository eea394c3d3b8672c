"""What every call to the daemon needs: the connection, the token, and errors that say what to do."""

from typing import Any

import grpc

from mosaic.client.channel import open_channel
from mosaic.client.endpoint import Endpoint
from mosaic.client.status import error_from
from mosaic.model.rundir import StateRoot
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

CALL_TIMEOUT_S = 30.0
SLOW_CALL_TIMEOUT_S = 180.0  # for calls that end process trees or delete large folders


class Caller:
    def __init__(self, endpoint: Endpoint, patience_s: float | None = 60.0, root: StateRoot | None = None) -> None:
        """`patience_s`: how long a broken stream waits for the next daemon before it raises NoDaemon; None: for ever.

        `root`: the state folder whose workers `run` looks up; None if the daemon is on another machine.
        """
        self.target = endpoint.name
        self.daemon_version = endpoint.version  # empty if only the daemon itself can say it: see `health`
        self._root = root
        self.patience_s = patience_s
        self._metadata = (("authorization", f"Bearer {endpoint.token}"),)
        self._channel = open_channel(endpoint.target)
        self._stub: Any = TrainerServiceStub(self._channel)  # type: ignore[no-untyped-call]

    async def _ask(self, call: Any, request: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        try:
            return await call(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as failure:
            raise error_from(failure, self.target) from None

    def _open(self, call: Any, timeout: float | None = None) -> Any:
        return lambda request: call(request, metadata=self._metadata, timeout=timeout)

    async def _wait_for_daemon(self) -> None:
        """Wait until a daemon answers at this address again."""
        try:
            await self._stub.GetHealth(
                pb.GetHealthRequest(), metadata=self._metadata, timeout=self.patience_s, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as failure:
            raise error_from(failure, self.target) from None
