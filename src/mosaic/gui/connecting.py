"""How the hub reaches the daemon: on this machine, where it is started if needed, or through ssh."""

import asyncio
import sys

from mosaic.client import AsyncTrainerClient
from mosaic.client.remote import Tunnel
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

LOOK_EVERY_S = 0.5
LONGEST_PAUSE_S = 30.0


class Connector:
    """An ssh that ends is started again, at the same socket, for as long as the window is open."""

    def __init__(self, home: StateRoot, host: str) -> None:
        self._home = home
        self._host = host
        self._tunnel: Tunnel | None = None
        self._keeper: "asyncio.Task[None] | None" = None
        self._problem = ""  # of ssh, in words

    async def connect(self) -> AsyncTrainerClient:
        """A connected client. Called again after a failure."""
        if not self._host:
            return await AsyncTrainerClient.connect(self._home)
        if self._keeper:
            self._keeper.cancel()
        self.close()
        self._tunnel = tunnel = Tunnel(self._host)
        # ssh may ask for a password in the terminal; the window goes on meanwhile.
        try:
            endpoint = await asyncio.to_thread(tunnel.open)
        except MosaicError as error:
            self._note(str(error))
            raise
        self._note("")
        self._keeper = asyncio.create_task(self._keep(tunnel))
        return AsyncTrainerClient(endpoint)

    def explain(self, problem: str) -> str:
        """A daemon that does not answer while ssh is down: ssh is the reason."""
        return self._problem or problem

    def close(self) -> None:
        if self._tunnel:
            self._tunnel.close()
            self._tunnel = None

    async def _keep(self, tunnel: Tunnel) -> None:
        pause_s = LOOK_EVERY_S
        while True:
            await asyncio.sleep(pause_s)
            if tunnel.is_open:
                self._note("")
                pause_s = LOOK_EVERY_S
                continue
            words = tunnel.last_words()
            self._note(self._problem or f"ssh to {self._host} has ended{f': {words}' if words else ''}.")
            try:
                await asyncio.to_thread(tunnel.reopen)
            except MosaicError as error:
                self._note(str(error))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _note(self, problem: str) -> None:
        """The terminal that the window was opened in says it too, once."""
        if problem and problem != self._problem:
            print(f"mosaic: {problem}", file=sys.stderr, flush=True)
        self._problem = problem
