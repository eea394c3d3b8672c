"""One phase of a custom script: the run's own config with some keys changed, run by the worker. Standard library only.

    python -m cleanrl_worker.phase 1/2 train algo=ppo env_id=CartPole-v1 total_timesteps=50000 algo_params.num_envs=8
    python -m cleanrl_worker.phase 2/2 evaluate mode=policy_eval policy_path="$MOSAIC_CHECKPOINT_DIR" eval_episodes=20
    steps=$(python -m cleanrl_worker.phase --get total_timesteps 50000)       what the user asked for, or the default

The phase's config is written to config/phase-N-NAME.json, `phase_started` is told, and the worker takes over the
process: what it says and how it ends are the phase's. A value is JSON where it can be read as such, else a text.

The whole script is one run, so a worker that runs a phase says phase_completed, phase_failed or phase_cancelled, not
run_…; the first phase also says run_started, the last one run_completed. A script may go on after a failed phase.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mosaic_sdk import emit, names
from mosaic_sdk.cli import USAGE
from mosaic_sdk.config import ConfigError, load_config
from mosaic_sdk.names import WorkerEnv

TOP = ("algo", "env_id", "total_timesteps", "seed")
STARTED = "phase_started"
VARIABLE = "CLEANRL_PHASE"  # tells the worker which phase it runs: "1/2 train"
_OF_A_PHASE = {
    names.RUN_COMPLETED: "phase_completed",
    names.RUN_FAILED: "phase_failed",
    names.RUN_CANCELLED: "phase_cancelled",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Phase:
    phase: int
    phases: int
    name: str

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Phase":
        """`["1/2", "train"]`; ConfigError for anything else."""
        found = re.fullmatch(r"([0-9]+)/([0-9]+)", words[0]) if len(words) >= 2 else None
        if not found or not _NAME.fullmatch(words[1]) or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                "Say which phase it is and its name: python -m cleanrl_worker.phase 1/2 train key=value …"
            )
        return cls(int(found[1]), int(found[2]), words[1])

    def __str__(self) -> str:
        return f"{self.phase}/{self.phases} {self.name}"


class PhaseEmitter(emit.Emitter):
    """Takes what a worker says of its run and says it of the phase."""

    def __init__(self, phase: Phase) -> None:
        super().__init__()
        self._phase = phase

    def lifecycle(self, event: str, payload: Mapping[str, Any] | None = None) -> bool:
        if event == names.RUN_STARTED:
            return True  # told by the first phase, before the worker took over
        said = super().lifecycle(_OF_A_PHASE.get(event, event), {**asdict(self._phase), **(payload or {})})
        is_end = event == names.RUN_COMPLETED and self._phase.phase == self._phase.phases
        return super().lifecycle(event, payload) if is_end else said


def is_running() -> bool:
    """Whether this process works on a phase of a custom script."""
    return bool(os.environ.get(VARIABLE))


def emitter() -> emit.Emitter:
    """For the worker's own start and end: as a phase in a custom script, else as the run."""
    words = os.environ.get(VARIABLE, "").split()
    return PhaseEmitter(Phase.parse(words)) if words else emit.stdout()


def main(argv: Sequence[str]) -> int:
    try:
        base = load_config(_variable(WorkerEnv.CONFIG_FILE))
        if argv[:1] == ["--get"] and len(argv) == 3:
            print(find(base, argv[1], argv[2]))
            return 0
        phase = Phase.parse(argv)
        config = with_settings(base, argv[2:])
        path = _write(phase, config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return USAGE
    if phase.phase == 1:
        emit.run_started()
    emit.lifecycle(STARTED, {**asdict(phase), "config": str(path)})
    os.environ[VARIABLE] = str(phase)
    return os.execv(sys.executable, [sys.executable, "-m", "cleanrl_worker.cli", "--config", str(path)])


def find(base: Mapping[str, Any], key: str, default: str) -> str:
    """The value of a key in the run's config, as a script can read it."""
    *folders, name = _place(key)
    for folder in folders:
        base = base.get(folder) or {}
    value = base.get(name)
    if value is None:
        return default
    return value if isinstance(value, str) else json.dumps(value)


def with_settings(base: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """`base` with every `key=value` at its place; ConfigError for what is none."""
    config: dict[str, Any] = json.loads(json.dumps(base))
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise ConfigError(f"'{setting}' is no setting. Write key=value.")
        *folders, name = _place(key)
        part = config
        for folder in folders:
            part[folder] = dict(part.get(folder) or {})
            part = part[folder]
        part[name] = _value(text)
    return config


def _place(key: str) -> list[str]:
    if key in TOP:
        return [key]
    return ["extras", *key.removeprefix("extras.").split(".")]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _write(phase: Phase, config: Mapping[str, Any]) -> Path:
    path = Path(_variable(WorkerEnv.CUSTOM_SCRIPTS_DIR)) / f"phase-{phase.phase}-{phase.name}.json"
    try:
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"{name} is not set: phases are run by a custom script under MOSAIC (mosaic run --script …).")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
