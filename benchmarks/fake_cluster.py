"""A Slurm that does not exist: its commands are small scripts, and every job runs at once on one of many nodes.

The daemon, its listener and its stores are real. `Tailers` plays the nodes: it registers and publishes for all runs.
"""

import asyncio
import json
import os
import time
from pathlib import Path

import grpc

from mosaic.client.run import Run
from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir
from mosaic.tail.parse import Parser
from mosaic.tail.request import Requests
from mosaic.tail.spool_reader import Lines
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub
from mosaic.wire.names import NODES_HOST, NONCE, RUN_ID

_COMMANDS = {
    "sbatch": """for word; do case $word in --job-name=*) name=${{word#--job-name=}};; esac; done
cat > /dev/null
exec 9>> {folder}/lock; flock 9
id=$(($(wc -l < {folder}/jobs) + 1)); echo "$id $name" >> {folder}/jobs; echo $id
""",
    "squeue": """awk '{{
    state = $1 > {running} ? "PENDING\\037Resources\\037" : sprintf("RUNNING\\037None\\037node%04d", $1 % {nodes})
    printf "%d\\037%s\\037%s\\037N/A\\037main\\n", $1, state, $2
}}' {folder}/jobs
""",
    "scontrol": 'echo "KillWait = 30 sec"\n',
    "scancel": "exit 0\n",
}


def install(folder: Path, nodes: int, running: int) -> None:
    """Put the commands in front of this process's PATH. Only the first `running` jobs run."""
    (folder / "jobs").touch()
    for name, text in _COMMANDS.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text.format(folder=folder, nodes=nodes, running=running)}")
        path.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


class Tailers:
    """One process for the tailers of all runs, over one connection each way."""

    def __init__(self, address: str, certificate: bytes | None = None) -> None:
        """`certificate`: of the listener for nodes; None: `address` is a Unix socket."""
        if certificate is None:
            self._channel = grpc.aio.insecure_channel(address)
        else:
            credentials = grpc.ssl_channel_credentials(certificate)
            self._channel = grpc.aio.secure_channel(
                address,
                credentials,
                options=[("grpc.ssl_target_name_override", NODES_HOST), ("grpc.use_local_subchannel_pool", 1)],
            )
        self._stub = TrainerServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._sessions: dict[str, tuple[list[tuple[str, str]], int]] = {}

    async def close(self) -> None:
        await self._channel.close()

    async def register(self, run: Run) -> None:
        launch = read_json(RunDir(run.run_dir).launch) or {}
        request = pb.RegisterWorkerRequest(run_id=run.run_id, attempt=launch["attempt"], nonce=launch["nonce"])
        metadata = [(RUN_ID, run.run_id), (NONCE, launch["nonce"])]
        reply = await self._stub.RegisterWorker(request, metadata=metadata)
        session = [(RUN_ID, run.run_id), ("authorization", f"Bearer {reply.session_token}")]
        self._sessions[run.run_id] = session, reply.cursor.stdout_offset

    async def publish(self, run: Run, requests: int, events: int, every_s: float = 0.0) -> None:
        """So many requests with so many events each; the next one when the last is stored, or `every_s`."""
        session, offset = self._sessions[run.run_id]
        lines = b"".join(_line(number) for number in range(events))
        request = Requests(run.run_id, Parser(run.run_id)).of(pb.STDOUT, Lines(offset, lines))
        call = self._stub.PublishTelemetry(metadata=session)
        at = time.monotonic()
        for _ in range(requests):
            request.start, request.end = offset, offset + len(lines)
            await call.write(request)
            offset = (await call.read()).next_offset
            if every_s:
                at += every_s
                await asyncio.sleep(max(0.0, at - time.monotonic()))
        await call.done_writing()
        self._sessions[run.run_id] = session, offset


def _line(number: int) -> bytes:
    return json.dumps({"type": "step", "step_index": number, "reward": 0.25, "episode_index": 3}).encode() + b"\n"
