"""What MOSAIC's own scripts share: the arguments of every experiment, its log, its seeds and its device.

Only the standard library is imported here: the worker reads a script's arguments without importing torch.
"""

import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Experiment:
    """The arguments that do not belong to an algorithm. Every script's Args inherits them."""

    exp_name: str = ""
    seed: int = 1
    torch_deterministic: bool = True
    cuda: bool = True
    track: bool = False
    wandb_project_name: str = "cleanRL"
    wandb_entity: str | None = None
    capture_video: bool = False


def name_run(args: Any) -> str:
    return f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}".replace("/", "_")


def open_log(args: Any, run_name: str) -> Any:
    """A SummaryWriter in runs/ that already has the hyperparameters; also starts wandb if it is requested."""
    from torch.utils.tensorboard import SummaryWriter

    if args.track:
        import wandb

        about = {"project": args.wandb_project_name, "entity": args.wandb_entity, "name": run_name}
        wandb.init(**about, config=vars(args), sync_tensorboard=True, monitor_gym=True)
    writer = SummaryWriter(f"runs/{run_name}")
    table = "".join(f"|{name}|{value}|\n" for name, value in vars(args).items())
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{table}")
    return writer


def seed_everything(args: Any) -> Any:
    """Seed the random number generators; returns the torch device to compute on."""
    import random

    import numpy as np
    import torch

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = args.torch_deterministic
    return torch.device("cuda" if args.cuda and torch.cuda.is_available() else "cpu")


def log_episodes(writer: Any, infos: Any, global_step: int) -> None:
    """Log every episode that ended in this step of a Gymnasium vector environment."""
    for info in infos.get("final_info", ()):
        if info and "episode" in info:
            log_episode(writer, float(info["episode"]["r"].item()), int(info["episode"]["l"].item()), global_step)


def log_episode(writer: Any, episodic_return: float, episodic_length: int, global_step: int) -> None:
    print(f"global_step={global_step}, episodic_return={episodic_return}")
    writer.add_scalar("charts/episodic_return", episodic_return, global_step)
    writer.add_scalar("charts/episodic_length", episodic_length, global_step)


def log_speed(writer: Any, global_step: int, start_time: float) -> None:
    sps = int(global_step / (time.time() - start_time))
    print("SPS:", sps)
    writer.add_scalar("charts/SPS", sps, global_step)


def linear_schedule(start: float, end: float, duration: float, step: int) -> float:
    """From `start` to `end` over `duration` steps, and `end` from then on."""
    return end if step >= duration else start + (end - start) * step / duration
