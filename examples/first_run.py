"""What `make run` shows: train PPO on CartPole through the whole pipeline, play the result on 20 seeds, say what next.

mosaic worker install cleanrl
python examples/first_run.py
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MOSAIC = str(Path(sys.executable).parent / "mosaic")
TRAIN = [
    *("algo=ppo", "env_id=CartPole-v1", "total_timesteps=100000", "seed=1"),
    # Many passes over small batches: CartPole is learned in half a minute.
    *("num_envs=8", "num_steps=32", "num_minibatches=1", "update_epochs=20"),
    *("gamma=0.98", "gae_lambda=0.8", "learning_rate=1e-3", "ent_coef=0", "clip_vloss=false"),
]
ENOUGH = 400.0  # of 500


def main() -> int:
    print(
        "PPO learns CartPole: CleanRL's network, settings tuned for CartPole instead of CleanRL's default ones.\n",
        flush=True,
    )
    trained = run_and_follow("first run", *TRAIN)
    print("\nNow the trained policy plays 20 episodes, each on a seed of its own.\n", flush=True)
    folder = trained["run_dir"]
    played = run_and_follow("its test", "mode=policy_eval", f"policy_path={folder}", "eval_episodes=20", "seed=1000")
    summary = json.loads(Path(played["run_dir"], "eval_summary.json").read_text())
    tell(trained, summary)
    return int(summary["mean_return"] < ENOUGH)


def run_and_follow(name: str, *settings: str) -> dict[str, Any]:
    """Run the worker with the live view, and give what MOSAIC knows of the run."""
    command = [MOSAIC, "run", "cleanrl", *settings, "--name", name, "--idempotency-key", f"{name} {time.time_ns()}"]
    ended = subprocess.run(command)
    if ended.returncode:
        sys.exit(ended.returncode)
    # The same key is the same run: this starts nothing.
    told = subprocess.run([*command, "--detach", "--json"], capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(told.stdout)
    return run


def tell(trained: dict[str, Any], summary: dict[str, Any]) -> None:
    run_id, folder = trained["run_id"], Path(trained["run_dir"])
    verdict = "learned" if summary["mean_return"] >= ENOUGH else f"not learned (less than {ENOUGH:g})"
    print(f"\nMean return over 20 seeds: {summary['mean_return']:.1f} of 500: {verdict}.\n")
    print("What to look at next:")
    print(f"  {MOSAIC} runs              every run")
    print(f"  {MOSAIC} show {run_id}   its history, paths, last values")
    print(f"  {MOSAIC} run cleanrl --help   every algorithm and setting; run one and watch it: mosaic frames RUN")
    print(f"  {MOSAIC} tensorboard {run_id}   its curves in a browser")
    print(f"  {MOSAIC} daemon stop       when you are done; live runs would go on")
    print(f"Its files: {folder}")


if __name__ == "__main__":
    sys.exit(main())
