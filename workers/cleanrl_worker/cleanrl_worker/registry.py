"""Every algorithm by name: its script, what it can be trained on, and why some cannot run here."""

import difflib
import importlib.metadata
import importlib.util
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError

DISCRETE, CONTINUOUS = "discrete", "continuous"
VECTOR, IMAGE, ATARI, PROCGEN, ENVPOOL, PLAYERS = "vector", "image", "atari", "procgen", "envpool", "players"
# Which gym a script imports: Gymnasium, gym 0.23's API over Gymnasium (our shim), or the real gym 0.23.
GYMNASIUM, SHIM, OLD_GYM = "gymnasium", "shim", "old"
# The package that environments of this kind need.
_NEEDS = {ATARI: "ale_py", PROCGEN: "procgen", ENVPOOL: "envpool", PLAYERS: "multi_agent_ale_py"}


@dataclass(frozen=True)
class Algorithm:
    """One entry of the registry."""

    name: str
    module: str
    gym: str = GYMNASIUM
    actions: str = DISCRETE
    takes: str = VECTOR
    variant: str = ""
    env_id: str = "CartPole-v1"  # an environment that it is known to run on
    problem: str = ""  # why it cannot run here, regardless of what is installed

    @cached_property
    def reason(self) -> str:
        """Why it cannot run in this environment, judged by the installed files; empty if it can."""
        return self.problem or _lack(self)

    @property
    def is_available(self) -> bool:
        return not self.reason

    @property
    def is_ours(self) -> bool:
        """Whether its script comes with the worker, not with CleanRL."""
        return self.module.startswith("cleanrl_worker.")


_BREAKOUT = "BreakoutNoFrameskip-v4"
_OURS = "cleanrl_worker.algorithms"
DEFAULT = "ppo"  # a checkout's version of it has another name, ppo_upstream


def _own(name: str, **more: Any) -> Algorithm:
    """A script in algorithms/ that is named after its algorithm."""
    return Algorithm(name, f"{_OURS}.{name}", **more)


_TABLE = (
    Algorithm("ppo", f"{_OURS}.ppo"),
    Algorithm("ppo_upstream", "cleanrl.ppo", SHIM),
    Algorithm("ppo_continuous_action", "cleanrl.ppo_continuous_action", GYMNASIUM, CONTINUOUS, env_id="HalfCheetah-v4"),
    Algorithm("ppo_atari", "cleanrl.ppo_atari", SHIM, takes=ATARI, env_id=_BREAKOUT),
    Algorithm("ppo_atari_lstm", "cleanrl.ppo_atari_lstm", SHIM, takes=ATARI, env_id=_BREAKOUT),
    Algorithm("ppo_atari_multigpu", "cleanrl.ppo_atari_multigpu", SHIM, takes=ATARI, env_id=_BREAKOUT),
    Algorithm("ppo_atari_envpool", "cleanrl.ppo_atari_envpool", OLD_GYM, takes=ENVPOOL, env_id="Pong-v5"),
    Algorithm("ppo_rnd_envpool", "cleanrl.ppo_rnd_envpool", OLD_GYM, takes=ENVPOOL, env_id="MontezumaRevenge-v5"),
    Algorithm("ppo_procgen", "cleanrl.ppo_procgen", OLD_GYM, takes=PROCGEN, env_id="starpilot"),
    Algorithm("ppg_procgen", "cleanrl.ppg_procgen", OLD_GYM, takes=PROCGEN, env_id="starpilot"),
    Algorithm("rpo_continuous_action", "cleanrl.rpo_continuous_action", GYMNASIUM, CONTINUOUS, env_id="HalfCheetah-v4"),
    Algorithm("dqn", "cleanrl.dqn"),
    Algorithm("dqn_atari", "cleanrl.dqn_atari", takes=ATARI, env_id=_BREAKOUT),
    Algorithm("c51", "cleanrl.c51", SHIM),
    Algorithm("c51_atari", "cleanrl.c51_atari", SHIM, takes=ATARI, env_id=_BREAKOUT),
    Algorithm("ddpg_continuous_action", "cleanrl.ddpg_continuous_action", GYMNASIUM, CONTINUOUS, env_id="Hopper-v4"),
    Algorithm("td3_continuous_action", "cleanrl.td3_continuous_action", SHIM, CONTINUOUS, env_id="Hopper-v4"),
    Algorithm("sac_continuous_action", "cleanrl.sac_continuous_action", SHIM, CONTINUOUS, env_id="Hopper-v4"),
    Algorithm("sac_atari", "cleanrl.sac_atari", SHIM, takes=ATARI, env_id=_BREAKOUT),
    Algorithm("dqn_jax", "cleanrl.dqn_jax", variant="jax"),
    Algorithm("dqn_atari_jax", "cleanrl.dqn_atari_jax", takes=ATARI, variant="jax", env_id=_BREAKOUT),
    Algorithm("c51_jax", "cleanrl.c51_jax", SHIM, variant="jax"),
    Algorithm("c51_atari_jax", "cleanrl.c51_atari_jax", SHIM, takes=ATARI, variant="jax", env_id=_BREAKOUT),
    Algorithm(
        "ddpg_continuous_action_jax",
        "cleanrl.ddpg_continuous_action_jax",
        GYMNASIUM,
        CONTINUOUS,
        variant="jax",
        env_id="Pendulum-v1",
    ),
    Algorithm(
        "td3_continuous_action_jax",
        "cleanrl.td3_continuous_action_jax",
        SHIM,
        CONTINUOUS,
        variant="jax",
        env_id="Pendulum-v1",
    ),
    # Their envpool-XLA interface needs a jax that no longer installs; ours call envpool back from the compiled program.
    _own("ppo_atari_envpool_xla_jax", takes=ENVPOOL, variant="jax", env_id="Pong-v5"),
    _own("ppo_atari_envpool_xla_jax_scan", takes=ENVPOOL, variant="jax", env_id="Pong-v5"),
    # Its script needs SuperSuit and gym; ours has its own wrappers.
    _own("ppo_pettingzoo_ma_atari", takes=PLAYERS, env_id="pong_v3"),
    Algorithm(
        "ppo_continuous_action_isaacgym",
        "cleanrl.ppo_continuous_action_isaacgym.ppo_continuous_action_isaacgym",
        OLD_GYM,
        CONTINUOUS,
        problem="it needs NVIDIA's isaacgym, which is not on the package index",
    ),
    # Newer than CleanRL 1.2.0, the latest release on the package index, or never part of it: MOSAIC's own scripts.
    _own("pqn"),
    _own("pqn_atari_envpool", takes=ENVPOOL, env_id="Pong-v5"),
    _own("pqn_atari_envpool_lstm", takes=ENVPOOL, env_id="Pong-v5"),
    _own("rainbow_atari", takes=IMAGE, env_id=_BREAKOUT),
    _own("qdagger_dqn_atari_impalacnn", takes=IMAGE, env_id=_BREAKOUT),
    _own("qdagger_dqn_atari_jax_impalacnn", takes=IMAGE, variant="jax", env_id=_BREAKOUT),
    _own("ppo_lstm"),
    _own("ppo_gru"),
    _own("ppo_trxl"),
    _own("double_dqn"),
    _own("dueling_dqn"),
    _own("munchausen_dqn"),
    _own("qr_dqn"),
)
ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _TABLE}


def find(name: str, upstream_path: str = "") -> Algorithm:
    """The algorithm, or ConfigError with the closest names or the reason. A checkout may contain any name."""
    found = ALGORITHMS.get(name)
    if found is None and upstream_path:
        return Algorithm(name, f"cleanrl.{name}", takes="", actions="")
    if found and upstream_path and found.is_ours and name != DEFAULT:
        return replace(found, module=f"cleanrl.{name}", takes="", actions="")  # the checkout's own version
    if found is None:
        raise ConfigError(f"algo: there is no algorithm {name!r}. {_nearest(name)}")
    if found.reason and not upstream_path:
        raise ConfigError(f"algo: {name} cannot run here: {found.reason}.")
    if found.variant and importlib.util.find_spec(found.variant) is None:
        raise ConfigError(
            f"algo: {name} needs the variant {found.variant}. Install it with: mosaic worker install cleanrl "
            f"--variant {found.variant}, and run it with: mosaic run cleanrl@{found.variant}"
        )
    return found


def script_path(module: str) -> Path | None:
    """The file of a module in this environment, found without importing it."""
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    paths = (Path(place, *rest.split(".")).with_suffix(".py") for place in places)
    return next((path for path in paths if path.is_file()), None)


def _lack(algorithm: Algorithm) -> str:
    if script_path(algorithm.module) is None:
        return f"{_missing()}; set upstream_path to a checkout that has it"
    needed = _NEEDS.get(algorithm.takes, "")
    if needed and importlib.util.find_spec(needed) is None:
        return f"it needs {needed}, which is not installed in this environment"
    return ""


def _missing() -> str:
    try:
        return f"it is not in the installed CleanRL {importlib.metadata.version('cleanrl')}"
    except importlib.metadata.PackageNotFoundError:
        return "CleanRL is not installed"


def _nearest(name: str) -> str:
    runnable = [other.name for other in _TABLE if other.is_available]
    near = difflib.get_close_matches(name, runnable, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"Available: {', '.join(runnable)}."
