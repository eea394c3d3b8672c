"""--script parallel: starts every process of the run, brings back the ones that die, and ends them in order.

    launcher ─┬─ logger
              ├─ replay
              ├─ agent      actor and learner, two threads around one agent
              └─ env 0 …    training envs, then evaluation envs

The agent's own end is the end of the run. Any other process, and an agent that was killed, is started again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mosaic_sdk.config import ConfigError

from dreamer_worker.agent_process import PART, run_agent
from dreamer_worker.checkpoint import COMMIT, Claim, Counters, Epochs
from dreamer_worker.config import DreamerConfig
from dreamer_worker.env import run_env
from dreamer_worker.factories import factories
from dreamer_worker.fastlane import hidden_wish
from dreamer_worker.life import Life
from dreamer_worker.logger import run_logger
from dreamer_worker.replay import run_replay
from dreamer_worker.rpc import free_address, make_secret
from dreamer_worker.supervisor import PATIENT_S, Child, Inmate, RoleFailed, Supervisor


def prepare(config: DreamerConfig) -> DreamerConfig:
    """The config with every blank filled in: addresses, secret, presets; and the run's folder made."""
    config = config.resolved()
    names = ("actor_addr", "replay_addr", "logger_addr")
    given = {name: getattr(config, name) for name in names}
    taken = {name: free_address() if value == "auto" else value for name, value in given.items()}
    secret = config.secret or os.environ.get("DREAMER_SECRET") or _new_secret(config)
    filled: dict[str, Any] = {"secret": secret, **taken}
    config = config.replace(**filled)
    os.makedirs(config.logdir, exist_ok=True)
    return config


def _new_secret(config: DreamerConfig) -> str:
    if config.remote_envs or config.remote_replay:
        raise ConfigError("Processes elsewhere must know the run's secret. Set DREAMER_SECRET, here and there.")
    return make_secret()


def resume(config: DreamerConfig) -> int | None:
    """Bring the run's counters to its newest whole epoch, which may be another run's; its number, if there is one.

    The count of launches alone goes on: by it a replay elsewhere knows that the run went back to that epoch.
    """
    Claim(config.checkpoint_dir).take().release()  # until who was killed a moment ago has saved
    epochs = Epochs(config.checkpoint_dir)
    if config.checkpoint and epochs.newest() is None:
        adopt(*chosen(Path(config.checkpoint)), epochs)
    epoch = epochs.newest()
    epochs.set_aside_after(epoch or 0)
    saved = epochs.read(epoch)["counters"] if epoch is not None else {}
    counters = Counters(Path(config.logdir) / "counters.bin")
    counters.reset({**saved, "launches": counters["launches"] + 1})
    return epoch


def chosen(checkpoint: Path) -> tuple[Epochs, int]:
    """What to go on from: that epoch, or the newest whole one of a folder of them."""
    if (checkpoint / COMMIT).is_file():
        epochs, epoch = Epochs(checkpoint.parent), int(checkpoint.name.rpartition("-")[2])
        if problem := epochs.damage(epoch):
            raise RoleFailed(f"{checkpoint} is damaged ({problem}). Use an older one beside it.")
        return epochs, epoch
    if (checkpoint / PART).is_file() or checkpoint.name == PART:
        raise RoleFailed(f"{checkpoint} holds the agent alone: it can be played, and nothing can go on from it.")
    newest = Epochs(checkpoint).newest()
    if newest is None:
        raise RoleFailed(f"There is no whole checkpoint in {checkpoint}. Name a run's checkpoints folder.")
    return Epochs(checkpoint), newest


def adopt(source: Epochs, epoch: int, target: Epochs) -> None:
    """Copy another run's epoch."""
    # Over what was copied by one who was killed at it.
    if (source.folder / "blocks").exists():
        shutil.copytree(source.folder / "blocks", target.folder / "blocks", dirs_exist_ok=True)
    shutil.copytree(source.path(epoch), target.begin(epoch), dirs_exist_ok=True)


def works(config: DreamerConfig) -> dict[str, Callable[[Life], None]]:
    """What each process of the run does, in the order in which they are started."""
    make = factories(config)
    found: dict[str, Callable[[Life], None]] = {
        "logger": partial(run_logger, make_logger=make["logger"], config=config),
        "replay": partial(run_replay, make_replay=make["replay"], make_stream=make["stream"], config=config),
        "agent": partial(run_agent, make_agent=make["agent"], config=config),
    }
    for index in range(config.envs + config.eval_envs):
        found[f"env{index}"] = partial(run_env, make_env=make["env"], index=index, config=config)
    return found


def plan(config: DreamerConfig) -> list[Any]:
    """The processes to start here."""
    children: list[Any] = []
    for name, work in works(config).items():
        if (name == "replay" and config.remote_replay) or (name.startswith("env") and config.remote_envs):
            continue
        if name == "agent" and not config.agent_process:
            children.append(Inmate(name, work))
        else:
            children.append(Child(name, work, variables_of(name, config)))
    return children


def variables_of(name: str, config: DreamerConfig) -> dict[str, str]:
    if name == "agent":
        # What took minutes to compile is kept, for the life after a kill and for the run that is resumed.
        kept = {
            "JAX_COMPILATION_CACHE_DIR": str(Path(config.logdir).absolute() / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        }
        return {name: value for name, value in kept.items() if name not in os.environ}
    # Only the agent computes: the others must neither take the GPU nor a thread pool per process.
    quiet = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**quiet, **hidden_wish()} if name.startswith("env") else quiet


def run_role(config: DreamerConfig, names: Sequence[str]) -> None:
    """These processes of a run that is launched elsewhere, each brought back when it dies; until stopped."""
    every = works(config)
    children = [Child(name, every[name], variables_of(name, config)) for name in names]
    Supervisor(children, last_s=PATIENT_S).run()


def run_parallel(config: DreamerConfig) -> dict[str, Any]:
    """The whole run; `config` comes from `prepare`, and `resume` has been called."""
    supervisor = Supervisor(plan(config))
    supervisor.run()
    counters = Counters(Path(config.logdir) / "counters.bin").to_dict()
    return {"total_steps": counters["env_steps"], **counters, "restarts": supervisor.restarts}
