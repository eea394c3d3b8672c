"""The worker's parameters as JSON Schema, generated: hyperparameters come from each script's own argument parser.

`extras.algo_params` has every hyperparameter of any script; what each script has, with its own defaults, is in it under
`x-mosaic-algorithms`, for the check at submit and for forms: {"dqn": {"learning_rate": {"default": 0.00025, …}, …}}.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.schema import schema_of

from cleanrl_worker.arguments import OWN, range_of
from cleanrl_worker.config import MODES, POLICY_EVAL, RESUME, VIDEO_MODES
from cleanrl_worker.registry import ALGORITHMS
from cleanrl_worker.scripts import CustomScript, shipped
from cleanrl_worker.upstream import Flag, find_script

SCRIPTS_SEED = 1  # what every script has by itself
CHECKOUT = "extras.upstream_path"  # the user's own checkout may have names and hyperparameters that nobody here knows

LAB: dict[str, dict[str, Any]] = {
    "short": {
        "algo": "dqn",
        "env_id": "CartPole-v1",
        "total_timesteps": 600,
        "seed": 1,
        "extras": {"algo_params": {"learning_starts": 100, "buffer_size": 1000}},
    },
    "long": {"algo": "ppo_upstream", "env_id": "CartPole-v1", "total_timesteps": 100_000_000, "seed": 1},
    "fails": {"algo": "dqn", "env_id": "Pendulum-v1", "total_timesteps": 600},
    "interactive": {"algo": "ppo", "env_id": "CartPole-v1"},
    "agent": {"algo": "ppo", "env_id": "CartPole-v1", "observation": [0, 0, 0, 0]},
}


def _extra(default: Any, words: str, **more: Any) -> Any:
    return field(default=default, metadata={"place": "extras", "help": words, **more})


@dataclass
class _Keys:
    """The keys that do not come from a script."""

    algo: str = field(default="ppo", metadata={"help": "the algorithm; ppo is MOSAIC's, the others are CleanRL's own"})
    env_id: str = field(default="CartPole-v1", metadata={"help": "the environment"})
    total_timesteps: int = field(default=500_000, metadata={"minimum": 1, "help": "steps in all"})
    seed: int | None = field(default=None, metadata={"minimum": 0, "help": "the same seed gives the same training"})
    mode: str = _extra("train", "what to do", choices=list(MODES))
    test_mode: bool = _extra(False, "the same as mode=policy_eval")
    cuda: bool = _extra(False, "train on the GPU that MOSAIC gives the run")
    use_cuda: bool = _extra(False, "the same as cuda")
    tensorboard_dir: str = _extra("tensorboard", "where TensorBoard's files go, in the run's folder")
    track_wandb: bool = _extra(False, "track with Weights & Biases; offline unless WANDB_API_KEY is set")
    capture_video: bool = _extra(False, "record videos into videos/")
    policy_path: str = _extra("", "the checkpoint to evaluate or to continue: a path, or a run's id, name or last")
    checkpoint_path: str = _extra("", "the same as policy_path")
    checkpoint_every: int = _extra(50_000, "steps between two checkpoints; 0: only at the end", minimum=0)
    keep_checkpoints: int = _extra(5, "how many of them stay", minimum=1)
    checkpoint_buffer_mb: int = _extra(256, "a larger replay buffer is not kept in a checkpoint", minimum=0)
    eval_every: int = _extra(0, "steps between two evaluations, of which the best is kept; 0: none", minimum=0)
    stop_on_nan: bool = _extra(True, "end the training when the loss is NaN")
    num_threads: int = _extra(1, "threads of torch's CPU kernels", minimum=1)
    upstream_path: str = _extra("", "a checkout of CleanRL whose scripts are run instead")
    fastlane_video_mode: str = _extra("single", "which environments are shown live", choices=list(VIDEO_MODES))
    fastlane_slot: int = _extra(0, "which one is shown in mode single", minimum=0)
    fastlane_grid_limit: int = _extra(4, "how many are shown in mode grid", minimum=1)


# What `mosaic eval RUN` sets: the checkpoint tells the algorithm and the environment.
EVALUATE = {
    "extras.mode": POLICY_EVAL,
    "extras.policy_path": "{checkpoint}",
    "seed": "{seed}",
    "extras.eval_episodes": "{episodes}",
    "extras.eval_capture_video": "{video}",
    "extras.cuda": "{parent}",
    "extras.upstream_path": "{parent}",
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 seed=1",
    "algo=dqn env_id=CartPole-v1 total_timesteps=100000 learning_rate=1e-3",
    "algo=ppo_atari env_id=BreakoutNoFrameskip-v4 total_timesteps=10000000",
    "mode=policy_eval policy_path=last eval_episodes=20 seed=1000",
]


def make_schema() -> dict[str, Any]:
    schema = schema_of(_Keys, title="CleanRL", lab=LAB)
    extras = schema["properties"]["extras"]["properties"]
    extras.update(_evaluation())
    extras["curriculum_schedule"] = _schedule_schema()
    extras["algo_params"] = _hyperparameter_schema()
    extras["use_cuda"]["x-mosaic-same-as"] = "cuda"
    extras["checkpoint_path"]["x-mosaic-same-as"] = "policy_path"
    properties = schema["properties"]
    properties["env"] = {**properties["env_id"], "description": "the same as env_id", "x-mosaic-same-as": "env_id"}
    properties["seed"]["default"] = SCRIPTS_SEED
    schema["properties"]["algo"].update(_algorithm_schema())
    schema["x-mosaic-examples"] = EXAMPLES
    schema["x-mosaic-inherits-with"] = ["extras.policy_path", "extras.checkpoint_path"]
    schema["x-mosaic-resume"] = {"extras.mode": RESUME, "extras.policy_path": "{checkpoint}"}
    schema["x-mosaic-eval"] = EVALUATE
    for name in ("policy_path", "checkpoint_path"):
        extras[name]["x-mosaic-checkpoint"] = True
    schema["x-mosaic-variants"] = {"algo": {name: found.variant for name, found in ALGORITHMS.items() if found.variant}}
    schema["x-mosaic-scripts"] = {script.name: _script_schema(script) for script in shipped()}
    return schema


def _script_schema(script: CustomScript) -> dict[str, Any]:
    facts = {name: value for name, value in vars(script).items() if value}
    return {**facts, "path": str(script.path)}


def _algorithm_schema() -> dict[str, Any]:
    """The names, as this environment's wheel has them: asked at install, and again when a package changes."""
    reasons = {name: found.reason for name, found in ALGORITHMS.items()}
    return {
        "enum": [name for name, reason in reasons.items() if not reason],
        "x-mosaic-unavailable": {name: reason for name, reason in reasons.items() if reason},
        "x-mosaic-open-with": CHECKOUT,
    }


def _hyperparameter_schema() -> dict[str, Any]:
    flags = {name: hyperparameters(name) for name in ALGORITHMS}
    return {
        "type": "object",
        "properties": _merged(flags),
        "additionalProperties": False,
        "x-mosaic-algorithms": flags,
        "x-mosaic-open-with": CHECKOUT,
    }


def hyperparameters(algo: str) -> dict[str, Any]:
    """One script's own, without what the run says itself; empty for a script that is not here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # distutils, which the scripts' parsers use
            flags = find_script(ALGORITHMS[algo]).flags
    except ConfigError:
        return {}
    return {name: _part(flag) for name, flag in flags.items() if name not in OWN}


def _part(flag: Flag) -> dict[str, Any]:
    part: dict[str, Any] = {"type": flag.kind, **range_of(flag.name)}
    if flag.takes_many:
        part = {"type": "array", "items": {}}
    elif flag.default is None:
        part["type"] = [flag.kind, "null"]
    if flag.choices:
        part["enum"] = list(flag.choices)
    return {**part, "default": flag.default, "description": flag.help}


def _merged(flags: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Each hyperparameter once; a default that differs between scripts is told in words."""
    merged: dict[str, Any] = {}
    for algo, parts in flags.items():
        for name, part in parts.items():
            merged.setdefault(name, []).append((algo, part))
    return {name: _one(found) for name, found in merged.items()}


def _one(found: list[Any]) -> dict[str, Any]:
    parts = [part for _, part in found]
    one = dict(parts[0])
    kinds = sorted({kind for part in parts for kind in _kinds(part)})
    one["type"] = kinds[0] if len(kinds) == 1 else kinds
    defaults = {repr(part["default"]) for part in parts}
    if len(defaults) > 1:
        one.pop("default")
        # exp_name's is each script's own name: as long a list as there are scripts tells nobody anything.
        is_own_name = all(str(part["default"]).startswith(algo.split("_")[0]) for algo, part in found)
        one["description"] += "; default the script's name" if is_own_name else f"; default {_shortened(found)}"
    return one


def _kinds(part: dict[str, Any]) -> list[str]:
    return [part["type"]] if isinstance(part["type"], str) else list(part["type"])


def _shortened(found: list[Any]) -> str:
    """`0.00025 (ppo, dqn …), 0.0003 (…)`: the values, with the first two scripts that have each."""
    by_value: dict[str, list[str]] = {}
    for algo, part in found:
        by_value.setdefault(str(part["default"]), []).append(algo)
    return ", ".join(f"{value} ({', '.join(who[:2])}{' …' if len(who) > 2 else ''})" for value, who in by_value.items())


def _evaluation() -> dict[str, Any]:
    from cleanrl_worker.evaluate import EVALUATION_SCHEMA

    return {name: dict(part) for name, part in EVALUATION_SCHEMA.items()}


def _schedule_schema() -> dict[str, Any]:
    from cleanrl_worker.wrappers.curriculum import SCHEDULE_SCHEMA

    return dict(SCHEDULE_SCHEMA)
