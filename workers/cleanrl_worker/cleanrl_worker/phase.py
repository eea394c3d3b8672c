"""One phase of a custom script: the run's own config with some keys changed, run by the worker. Standard library only.

    python -m cleanrl_worker.phase 1/2 train algo=ppo env_id=CartPole-v1 total_timesteps=50000 algo_params.num_envs=8
    python -m cleanrl_worker.phase 2/2 evaluate mode=policy_eval policy_path="$MOSAIC_CHECKPOINT_DIR" eval_episodes=20
    steps=$(python -m cleanrl_worker.phase --get total_timesteps 50000)          the value in the config, or the default

The phase's config is written to config/phase-N-NAME.json, `phase_started` is emitted, and the worker replaces this
process: its output and its exit code are the phase's. A value is parsed as JSON if possible; otherwise it is a string.

config/curriculum_config.json holds the schedule in force, if any: the run's own, until a phase trains with another.
`--get curriculum_schedule` and every phase read it from there.

The whole script is one run. So a worker that runs a phase emits phase_completed, phase_failed or phase_cancelled
instead of run_…; the first phase also emits run_started, the last one run_completed. A script may continue after a
failed phase.
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
from mosaic_sdk.files import write_text
from mosaic_sdk.names import WorkerEnv

from cleanrl_worker.config import POLICY_EVAL
from cleanrl_worker.wrappers.schedule import read_schedule

TOP = ("algo", "env_id", "total_timesteps", "seed")
STARTED = "phase_started"
CURRICULUM = "curriculum_config.json"  # in config/: the schedule in force, which every phase reads
VARIABLE = "CLEANRL_PHASE"  # the phase that the worker runs: "1/2 train"
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
    def parse(cls, arguments: Sequence[str]) -> "Phase":
        """`["1/2", "train"]`; ConfigError for anything else."""
        found = re.fullmatch(r"([0-9]+)/([0-9]+)", arguments[0]) if len(arguments) >= 2 else None
        if not found or not _NAME.fullmatch(arguments[1]) or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                "Give the number and the name of the phase: python -m cleanrl_worker.phase 1/2 train key=value …"
            )
        return cls(int(found[1]), int(found[2]), arguments[1])

    def __str__(self) -> str:
        return f"{self.phase}/{self.phases} {self.name}"


class PhaseEmitter(emit.Emitter):
    """Turns the events of a run into events of its phase."""

    def __init__(self, phase: Phase) -> None:
        super().__init__()
        self._phase = phase

    def lifecycle(self, event: str, payload: Mapping[str, Any] | None = None) -> bool:
        if event == names.RUN_STARTED:
            return True  # the first phase has emitted it, before the worker replaced the process
        is_written = super().lifecycle(_OF_A_PHASE.get(event, event), {**asdict(self._phase), **(payload or {})})
        is_end = event == names.RUN_COMPLETED and self._phase.phase == self._phase.phases
        return super().lifecycle(event, payload) if is_end else is_written


def is_running() -> bool:
    """Whether this process runs a phase of a custom script."""
    return bool(os.environ.get(VARIABLE))


def emitter() -> emit.Emitter:
    """The emitter for the worker's start and end: the phase's in a custom script, otherwise the run's."""
    arguments = os.environ.get(VARIABLE, "").split()
    return PhaseEmitter(Phase.parse(arguments)) if arguments else emit.stdout()


def main(argv: Sequence[str]) -> int:
    try:
        base = with_curriculum(load_config(_variable(WorkerEnv.CONFIG_FILE)))
        if argv[:1] == ["--get"] and len(argv) == 3:
            print(find(base, argv[1], argv[2]))
            return 0
        phase = Phase.parse(argv)
        config = note_curriculum(with_settings(base, argv[2:]))
        path = _write(phase, config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return USAGE
    if phase.phase == 1:
        emit.run_started()
    emit.lifecycle(STARTED, {**asdict(phase), "config": str(path)})
    os.environ[VARIABLE] = str(phase)
    return os.execv(sys.executable, [sys.executable, "-m", "cleanrl_worker.cli", "--config", str(path)])


def with_curriculum(base: Mapping[str, Any]) -> dict[str, Any]:
    """The run's config with the schedule in force: curriculum_config.json, if it exists."""
    path = _folder() / CURRICULUM
    if not path.exists():
        return dict(base)
    try:
        schedule = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from None
    return {**base, "extras": {**(base.get("extras") or {}), "curriculum_schedule": schedule}}


def note_curriculum(config: dict[str, Any]) -> dict[str, Any]:
    """The phase's config with every stage written out. The schedule of a training is in force from here on."""
    extras = config.get("extras") or {}
    schedule = extras.get("curriculum_schedule")
    if not schedule or extras.get("mode") == POLICY_EVAL:
        return config
    try:
        stages = [stage.to_dict() for stage in read_schedule(schedule)]
    except ConfigError:
        return config  # the worker refuses it, and the phase fails
    _write_json(_folder() / CURRICULUM, stages)
    return {**config, "extras": {**extras, "curriculum_schedule": stages}}


def find(base: Mapping[str, Any], key: str, default: str) -> str:
    """The value of a key in the run's config, as a string for a shell script."""
    *folders, name = _place(key)
    for folder in folders:
        base = base.get(folder) or {}
    value = base.get(name)
    if value is None:
        return default
    return value if isinstance(value, str) else json.dumps(value)


def with_settings(base: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """`base` with every `key=value` in its place; ConfigError for anything else."""
    config: dict[str, Any] = json.loads(json.dumps(base))
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise ConfigError(f"'{setting}' is not a valid setting. Write key=value.")
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
    path = _folder() / f"phase-{phase.phase}-{phase.name}.json"
    _write_json(path, config)
    return path


def _write_json(path: Path, document: Any) -> None:
    try:
        write_text(path, json.dumps(document, indent=2))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from None


def _folder() -> Path:
    return Path(_variable(WorkerEnv.CUSTOM_SCRIPTS_DIR))


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"{name} is not set. Phases are run by a custom script under MOSAIC: mosaic run --script …")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
