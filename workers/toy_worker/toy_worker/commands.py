"""mode=commands: one step per `step` command on stdin; `finish`, or the end of stdin, ends the run.

{"seq": 1, "id": "…", "cmd": "step", "count": 3}  →  three step lines, each with "command": 1
                                                  →  command_done {"seq": 1, "cmd": "step", "ok": true, …}
"""

import json
import sys
from typing import Any, Dict, TextIO

from toy_worker.config import ToyConfig
from toy_worker.learning import Noise
from toy_worker.telemetry import CARRIED_OUT, Telemetry

STEP, FINISH = "step", "finish"


class ToyServant:
    """Reads one command after the other."""

    def __init__(self, config: ToyConfig, telemetry: Telemetry) -> None:
        self.steps = 0
        self.done = 0
        self._noise = Noise(config.seed or 0)
        self._telemetry = telemetry

    def obey(self, commands: TextIO = sys.stdin) -> Dict[str, Any]:
        for line in commands:
            command = json.loads(line)
            problem = self._do(command)
            self._telemetry.record.note(CARRIED_OUT, command["seq"])
            answer = {"seq": command["seq"], "cmd": command["cmd"], "ok": not problem, "message": problem}
            self._telemetry.lifecycle("command_done", answer)
            self.done += 1
            if command["cmd"] == FINISH:
                break
        return {"total_steps": self.steps, "commands": self.done}

    def _do(self, command: Dict[str, Any]) -> str:
        """What is wrong with the command; empty if it was done."""
        if command["cmd"] == STEP:
            for _ in range(int(command.get("count", 1))):
                self._telemetry.step(self.steps, self._noise.next(), command=command["seq"])
                self.steps += 1
        elif command["cmd"] != FINISH:
            return f"'{command['cmd']}' is not a command. Choose from: {STEP}, {FINISH}."
        return ""
