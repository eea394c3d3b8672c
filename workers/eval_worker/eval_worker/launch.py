"""How the processes of the lanes are started.

The daemon writes MOSAIC_OPERATORS_FILE with a command for each operator that needs another worker's environment. Env
hosts, and operators without a policy, are part of this worker.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import read_json, write_json
from mosaic_sdk.names import WorkerEnv
from mosaic_sdk.operators.lane_plan import Lane as LanePlan
from mosaic_sdk.operators.script import EvalScript
from mosaic_sdk.operators.specs import HUMAN, RESOLVED

from eval_worker import fastlane
from eval_worker.children import HOST_LIMIT_S, Asked, Command
from eval_worker.ledgers import REPLAY_VARIABLE

HOST = "env host"
HOSTS = "hosts"  # in the run's folder: config files of hosts, apart from the operators', which may have any name
DEMONSTRATIONS = "demonstrations"


class Launcher:
    """Makes the children of lanes; each starts when it is first asked."""

    def __init__(self, run_id: str, script: EvalScript, run_dir: str, ledgers: Mapping[str, str]) -> None:
        """`ledgers`: by operator, the ledger of the run that is resumed."""
        self._run_id = run_id
        self._script = script
        self._run_dir = run_dir
        self._ledgers = ledgers
        self._commands = read_operators(os.environ.get(WorkerEnv.OPERATORS_FILE, ""))

    def about(self, name: str) -> Mapping[str, Any]:
        """What the daemon knows of an operator: its worker, run and checkpoint."""
        about = self._commands.get(name, {}).get("about")
        return about if isinstance(about, dict) else {}

    def owns_env(self, operator: str) -> bool:
        """Whether it plays in an environment of its own, which the daemon compared with the script's."""
        return bool(self._commands.get(operator, {}).get("owns_env"))

    def needs_host(self) -> bool:
        """Whether the agents of the environment must be known before the lanes can be planned."""
        has_agents = any("agents" in lane for lane in self._script.lanes or ())
        return has_agents or not all(map(self.owns_env, self._script.operators))

    def host(self, lane: int, name: str) -> Asked:
        folder = os.path.join(self._run_dir, DEMONSTRATIONS) if self._script.record else ""
        config = {"run_id": self._run_id, "lane": name, "env": self._script.env, "demonstrations": folder}
        path = os.path.join(self._run_dir, HOSTS, f"{name}.json")
        write_json(path, config, mode=0o600)
        argv = [sys.executable, "-m", "eval_worker", "--host", path]
        return Asked(HOST, Command(argv, self._frames(lane), self._run_dir), HOST_LIMIT_S)

    def player(self, lane: int, operator: str) -> Asked:
        return self._asked(operator, self._command(operator).with_env(self._frames(lane)))

    def operator(self, operator: str) -> Asked:
        ledger = self._ledgers.get(operator)
        more = {**fastlane.OFF, **({REPLAY_VARIABLE: ledger} if ledger else {})}
        return self._asked(operator, self._command(operator).with_env(more))

    def _asked(self, operator: str, command: Command) -> Asked:
        return Asked(f"operator {operator}", command, self._script.operators[operator]["timeout_s"])

    def _command(self, operator: str) -> Command:
        kind = self._script.operators[operator]["kind"]
        if kind not in RESOLVED:
            argv = [sys.executable, "-m", "mosaic_sdk.operators", kind, "--name", operator]
            return Command(argv, {}, self._run_dir)
        entry = self._commands.get(operator)
        if entry is None:
            raise ConfigError(
                f"operators.{operator}: the run has no command for it. Submit the evaluation with: mosaic eval FILE"
            )
        return Command(entry["argv"], entry["env"], entry.get("cwd") or self._run_dir)

    def _frames(self, lane: int) -> Mapping[str, str]:
        return fastlane.lane_variables(lane, self._script.video > 0)


def has_people(script: EvalScript, lane: LanePlan) -> bool:
    return any(script.operators[seat.operator]["kind"] == HUMAN for seat in lane.seats)


def read_operators(path: str) -> Mapping[str, Mapping[str, Any]]:
    """The operators of MOSAIC_OPERATORS_FILE; none if there is no such file."""
    if not path:
        return {}
    try:
        operators = read_json(path).get("operators")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{WorkerEnv.OPERATORS_FILE}: cannot read {path}: {error}") from None
    return operators if isinstance(operators, dict) else {}
