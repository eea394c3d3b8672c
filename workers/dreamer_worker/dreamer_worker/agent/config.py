"""The agent's settings: frozen, named as in the paper, with presets of size and of suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, cast


@dataclass(frozen=True)
class Rssm:
    """The recurrent state-space model: the memory of the world model."""

    deter: int = 8192
    hidden: int = 1024
    stoch: int = 32
    classes: int = 64
    blocks: int = 8
    prior_layers: int = 2
    posterior_layers: int = 1
    unimix: float = 0.01
    free_nats: float = 1.0


@dataclass(frozen=True)
class Nets:
    """Encoder, decoder and heads."""

    units: int = 1024
    depth: int = 64
    mults: tuple[int, ...] = (2, 3, 4, 4)
    kernel: int = 5
    vector_layers: int = 3
    reward_layers: int = 1
    continue_layers: int = 1
    policy_layers: int = 3
    value_layers: int = 3
    bins: int = 255
    policy_outscale: float = 0.01
    min_std: float = 0.1
    max_std: float = 1.0
    policy_unimix: float = 0.01  # 0: as in the reference, where it has no effect


@dataclass(frozen=True)
class Learning:
    """Losses and returns."""

    horizon: int = 333
    continue_carries_discount: bool = True
    imagined_steps: int = 15
    lam: float = 0.95
    entropy: float = 3e-4
    slow_rate: float = 0.02
    slow_weight: float = 1.0
    return_rate: float = 0.01
    return_limit: float = 1.0
    return_low: float = 5.0
    return_high: float = 95.0
    return_debias: bool = False  # the reference's average starts at zero, uncorrected
    actor_gradient: str = "reinforce"  # or "dynamics": of continuous actions, through the dream, as in 2023
    replay_context: int = 1
    scale_reconstruction: float = 1.0
    scale_reward: float = 1.0
    scale_continue: float = 1.0
    scale_dynamics: float = 1.0
    scale_representation: float = 0.1
    scale_policy: float = 1.0
    scale_value: float = 1.0
    scale_replay_value: float = 0.3

    def __post_init__(self) -> None:
        if self.actor_gradient not in ("reinforce", "dynamics"):
            raise ValueError(f"learning.actor_gradient is {self.actor_gradient!r}; choose reinforce or dynamics.")


@dataclass(frozen=True)
class Optimizer:
    """LaProp with adaptive gradient clipping."""

    lr: float = 4e-5
    warmup: int = 1000
    agc: float = 0.3
    smallest_norm: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-20


@dataclass(frozen=True)
class Compute:
    """How it is computed. Nothing here changes the result, except for rounding."""

    dtype: str = "bfloat16"
    path: str = "fast"  # or "plain": the same numbers from straightforward code
    observe_unroll: int = -1  # steps of the observed scan per loop turn; -1: 16, and 1 on a CPU, where compiling counts
    imagine_unroll: int = -1  # the same of the dream; -1: 5, and 1 on a CPU
    phase_convolutions: int = -1  # how many encoder stages are computed by phase; -1: all, and none on a CPU
    kernels: str = "auto"  # of a small model: "triton" are hand-written, "xla" the compiler's; auto: triton on a GPU
    side_by_side: bool = True  # on a GPU: kernels that do not wait for each other run at the same time
    policy_sync_every: int = 10  # updates between two refreshes of the actor's weights
    devices: int = 1  # that share each batch; 0: all that JAX finds
    policy_device: str = ""  # where the policy runs: "cpu", "gpu:1"; empty: where the learner does

    def __post_init__(self) -> None:
        if self.dtype not in ("bfloat16", "float32"):
            raise ValueError(f"compute.dtype is {self.dtype!r}; choose bfloat16 or float32.")
        if self.path not in ("fast", "plain"):
            raise ValueError(f"compute.path is {self.path!r}; choose fast or plain.")
        if self.kernels not in ("auto", "xla", "triton", "interpreted"):
            raise ValueError(f"compute.kernels is {self.kernels!r}; choose auto, xla, triton or interpreted.")

    def on(self, device: str) -> Compute:
        """With the settings that were left open chosen for `cpu`, `gpu` or `tpu`."""
        observe, imagine, phases = (1, 1, 0) if device == "cpu" else (16, 5, 99)
        return replace(
            self,
            kernels=("triton" if device == "gpu" else "xla") if self.kernels == "auto" else self.kernels,
            observe_unroll=observe if self.observe_unroll < 0 else self.observe_unroll,
            imagine_unroll=imagine if self.imagine_unroll < 0 else self.imagine_unroll,
            phase_convolutions=phases if self.phase_convolutions < 0 else self.phase_convolutions,
        )


@dataclass(frozen=True)
class AgentConfig:
    """All settings of an agent, beside its spaces."""

    seed: int = 0
    eval_samples: bool = False  # True: as in the reference, evaluation draws its actions
    report_length: int = 32
    encode: str = ".*"  # keys of the observation that the world model sees and rebuilds, as a regular expression
    rssm: Rssm = field(default_factory=Rssm)
    nets: Nets = field(default_factory=Nets)
    learning: Learning = field(default_factory=Learning)
    optimizer: Optimizer = field(default_factory=Optimizer)
    compute: Compute = field(default_factory=Compute)

    @classmethod
    def preset(cls, size: str = "200m", suite: str = "", **changes: Any) -> AgentConfig:
        """A size (`1m` .. `400m`, `debug`), a suite's own agent settings over it, then `changes` as in `from_dict`."""
        if size.removeprefix("size") not in SIZES:
            raise ValueError(f"There is no size {size!r}. Sizes: {', '.join(SIZES)}.")
        if suite and suite not in SUITES:
            raise ValueError(f"There is no suite {suite!r}. Suites: {', '.join(SUITES)}.")
        config = _changed(cls(), SIZES[size.removeprefix("size")])
        if suite:
            config = _changed(config, SUITES[suite].get("agent", {}))
        return cast(AgentConfig, _changed(config, changes))

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> AgentConfig:
        """From a plain dict, nested as the classes are; `size` and `suite` name presets to start from."""
        changes = dict(settings)
        suite = changes.pop("suite", "")
        size = changes.pop("size", SUITES.get(suite, {}).get("size", "200m"))
        return cls.preset(size, suite, **changes)

    def to_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def _changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with `changes`, of which every name must exist."""
    known = {item.name for item in fields(settings)}
    if unknown := sorted(set(changes) - known):
        raise ValueError(f"{type(settings).__name__} has no {', '.join(unknown)}. It has: {', '.join(sorted(known))}.")
    return replace(settings, **{name: _coerced(getattr(settings, name), value) for name, value in changes.items()})


def _coerced(old: Any, new: Any) -> Any:
    if is_dataclass(old):
        return _changed(old, asdict(new) if is_dataclass(new) and not isinstance(new, type) else new)
    return tuple(new) if isinstance(old, tuple) else type(old)(new)


def _size(deter: int, units: int, classes: int) -> dict[str, Any]:
    return {
        "rssm": {"deter": deter, "hidden": units, "classes": classes},
        "nets": {"units": units, "depth": classes},
    }


SIZES: dict[str, dict[str, Any]] = {
    "debug": {
        "rssm": {"deter": 8, "hidden": 3, "stoch": 2, "classes": 4, "blocks": 4},
        "nets": {"units": 8, "depth": 2, "bins": 5, "vector_layers": 1, "policy_layers": 1, "value_layers": 1},
    },
    "1m": _size(512, 64, 4),
    "12m": _size(2048, 256, 16),
    "25m": _size(3072, 384, 24),
    "50m": _size(4096, 512, 32),
    "100m": _size(6144, 768, 48),
    "200m": _size(8192, 1024, 64),
    "400m": _size(12288, 1536, 96),
}

# What each benchmark suite is run with: the task, how much to train on it, and what the agent looks at.
# `run.train_ratio` is replayed steps per env step; `run.steps` counts agent steps.
SUITES: dict[str, dict[str, Any]] = {
    "atari": {"task": "atari_pong", "run": {"steps": 51_000_000, "envs": 16, "train_ratio": 32}},
    "atari100k": {"task": "atari100k_pong", "run": {"steps": 110_000, "envs": 1, "train_ratio": 256}},
    "crafter": {"task": "crafter_reward", "run": {"steps": 1_100_000, "envs": 1, "train_ratio": 512}},
    "dmc_proprio": {
        "task": "dmc_walker_walk",
        "size": "1m",
        "agent": {"encode": "(?!image$).*"},
        "run": {"steps": 1_100_000, "envs": 16, "train_ratio": 1024},
    },
    "dmc_vision": {
        "task": "dmc_walker_walk",
        "agent": {"encode": "image"},
        "run": {"steps": 1_100_000, "envs": 16, "train_ratio": 256},
    },
    "dmlab": {"task": "dmlab_explore_goal_locations_small", "run": {"steps": 26_000_000, "train_ratio": 32}},
    "minecraft": {"task": "minecraft_diamond", "run": {"train_ratio": 32}},
    "procgen": {"task": "procgen_coinrun", "run": {"steps": 110_000_000, "train_ratio": 64}},
    "bsuite": {"task": "bsuite_mnist/0", "run": {"envs": 1, "train_ratio": 1024}},
    "loconav": {"task": "loconav_ant_maze_m", "run": {"train_ratio": 256}},
    "minigrid": {"task": "minigrid_MiniGrid-Empty-5x5-v0", "size": "1m", "run": {"envs": 4, "train_ratio": 256}},
    "gymnasium": {"task": "gym_CartPole-v1", "size": "1m", "run": {"envs": 4, "train_ratio": 256}},
}
