"""The worker's JSON Schema: its settings from config.py, the hyperparameters from each script's own argument parser.

`extras.algo_params` lists every hyperparameter of any script. Under `x-mosaic-algorithms` it has those of each script
with the script's own defaults, for the check at submit and for forms: {"dqn": {"learning_rate": {"default": …}, …}}.
"""

import warnings
from typing import Any

from mosaic_sdk import keywords
from mosaic_sdk.config import ConfigError
from mosaic_sdk.schema import schema_of

from cleanrl_worker.arguments import OWN, range_of
from cleanrl_worker.config import INTERACTIVE, POLICY_EVAL, RESUME, CleanRLWorkerConfig
from cleanrl_worker.descriptions import DESCRIPTIONS
from cleanrl_worker.registry import ALGORITHMS
from cleanrl_worker.scripts import CustomScript, shipped
from cleanrl_worker.upstream import Flag, find_script

CHECKOUT = "extras.upstream_path"  # a user's checkout may have other algorithms and hyperparameters

CHECKPOINTS = ("teacher_path",)  # hyperparameters that are checkpoints

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


# The settings of `mosaic eval RUN`; the checkpoint determines the algorithm and the environment.
EVALUATE = {
    "extras.mode": POLICY_EVAL,
    "extras.policy_path": "{checkpoint}",
    "seed": "{seed}",
    "extras.eval_episodes": "{episodes}",
    "extras.eval_capture_video": "{video}",
    "extras.cuda": "{parent}",
    "extras.upstream_path": "{parent}",
}
# As an operator; the checkpoint determines the algorithm and the environment here too.
AS_OPERATOR = {
    "settings": {
        "extras.mode": INTERACTIVE,
        "extras.policy_path": "{checkpoint}",
        "algo": "{algo}",
        "env_id": "{env_id}",
        "extras.env_kwargs": "{env_kwargs}",
        "extras.cuda": "{parent}",
        "extras.upstream_path": "{parent}",
    },
    "arguments": ["--interactive"],
}
EXAMPLES = [
    "algo=ppo env_id=CartPole-v1 total_timesteps=100000 seed=1",
    "algo=dqn env_id=CartPole-v1 total_timesteps=100000 learning_rate=1e-3",
    "algo=ppo_atari env_id=BreakoutNoFrameskip-v4 total_timesteps=10000000",
    "mode=policy_eval policy_path=last eval_episodes=20 seed=1000",
]


def make_schema() -> dict[str, Any]:
    schema = schema_of(
        CleanRLWorkerConfig,
        title="CleanRL",
        lab=LAB,
        examples=EXAMPLES,
        resume={"extras.mode": RESUME, "extras.policy_path": "{checkpoint}"},
        evaluate=EVALUATE,
        interactive=AS_OPERATOR,
        export="cleanrl_worker.export",
        inherits_with=["extras.policy_path", "extras.checkpoint_path"],
        variants={"algo": {name: found.variant for name, found in ALGORITHMS.items() if found.variant}},
        scripts={script.name: _script_schema(script) for script in shipped()},
    )
    schema["properties"]["algo"].update(_algorithm_schema())
    schema["properties"]["extras"]["properties"]["algo_params"] = _hyperparameter_schema()
    return schema


def _script_schema(script: CustomScript) -> dict[str, Any]:
    details = {name: value for name, value in vars(script).items() if value}
    return {**details, "path": str(script.path)}


def _algorithm_schema() -> dict[str, Any]:
    """The algorithms of this environment, read at install and again when a package changes."""
    reasons = {name: found.reason for name, found in ALGORITHMS.items()}
    return {
        "enum": [name for name, reason in reasons.items() if not reason],
        keywords.UNAVAILABLE: {name: reason for name, reason in reasons.items() if reason},
        keywords.OPEN_WITH: CHECKOUT,
    }


def _hyperparameter_schema() -> dict[str, Any]:
    flags = {name: hyperparameters(name) for name in ALGORITHMS}
    return {
        "type": "object",
        "properties": _merged(flags),
        "additionalProperties": False,
        keywords.ALGORITHMS: flags,
        keywords.OPEN_WITH: CHECKOUT,
    }


def hyperparameters(algo: str) -> dict[str, Any]:
    """One script's hyperparameters, without the flags that the run's settings fill in; empty if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the scripts' parsers use distutils, which is deprecated
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
    if flag.name in CHECKPOINTS:
        part[keywords.CHECKPOINT] = True  # so that it may also name a run
    return {**part, "default": flag.default, "description": DESCRIPTIONS.get(flag.name, flag.help)}


def _merged(flags: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Each hyperparameter once. If its default differs between scripts, the description lists the defaults."""
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
        # The default of exp_name is the script's own name: a list of all of them would not help.
        is_own_name = all(str(part["default"]).startswith(algo.split("_")[0]) for algo, part in found)
        default = "the script's name" if is_own_name else _shortened(found)
        one["description"] += f" Default: {default}."
    return one


def _kinds(part: dict[str, Any]) -> list[str]:
    return [part["type"]] if isinstance(part["type"], str) else list(part["type"])


def _shortened(found: list[Any]) -> str:
    """`0.00025 (ppo, dqn …), 0.0003 (…)`: each value with the first two scripts that have it."""
    by_value: dict[str, list[str]] = {}
    for algo, part in found:
        default = part["default"]
        by_value.setdefault(str(default).lower() if isinstance(default, bool) else str(default), []).append(algo)
    return ", ".join(f"{value} ({', '.join(who[:2])}{' …' if len(who) > 2 else ''})" for value, who in by_value.items())
