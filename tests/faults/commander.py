"""A client that sends commands to one run, one after the other, whatever happens to the daemon."""

import threading
import time

from mosaic.client import TrainerClient
from mosaic.model.errors import MosaicError, NoDaemon, RunIsOver, StoreUnavailable, UnknownRun
from mosaic.model.rundir import StateRoot

ANSWER_WITHIN_S = 60.0
PAUSE_S = 0.02
STEPS = 60


class Commander(threading.Thread):
    """Sends some steps and a `finish`, each again with its id until it is acknowledged or the run is over."""

    def __init__(self, root: StateRoot, run_id: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[int] = []
        self.problem = ""
        self._root = root
        self._run_id = run_id
        self._commands = [*["step"] * STEPS, "finish"]
        self.start()

    def run(self) -> None:
        try:
            for number, name in enumerate(self._commands):
                self.acknowledged.append(self._send(name, f"command-{number}"))
                time.sleep(PAUSE_S)
        except (RunIsOver, UnknownRun):
            pass
        except (MosaicError, TimeoutError) as error:
            self.problem = f"a command was refused: {error}"

    def _send(self, name: str, command_id: str) -> int:
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while True:
            try:
                # A new client each time: an old one may be connected to a daemon that is stopped.
                with TrainerClient.connect(self._root, start=False) as client:
                    return client.command_run(self._run_id, {"cmd": name}, command_id)
            except (NoDaemon, StoreUnavailable) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no answer within {ANSWER_WITHIN_S:.0f} s: {error}") from error
                time.sleep(PAUSE_S)
