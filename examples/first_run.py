"""The example that `make run` runs: train PPO on CartPole, evaluate the policy on 20 seeds, and suggest next steps.

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
    # Many epochs on small batches: CartPole is learned in half a minute.
    *("num_envs=8", "num_steps=32", "num_minibatches=1", "update_epochs=20"),
    *("gamma=0.98", "gae_lambda=0.8", "learning_rate=1e-3", "ent_coef=0", "clip_vloss=false"),
]
SOLVED_RETURN = 400.0  # of 500


def main() -> int:
    print("Training PPO on CartPole-v1 for 100,000 steps, with hyperparameters tuned for CartPole.\n", flush=True)
    trained = run_and_follow("first run", *TRAIN)
    print("\nEvaluating the trained policy: 20 episodes, each with its own seed.\n", flush=True)
    folder = trained["run_dir"]
    settings = ["mode=policy_eval", f"policy_path={folder}", "eval_episodes=20", "seed=1000"]
    evaluated = run_and_follow("first evaluation", *settings)
    summary = json.loads(Path(evaluated["run_dir"], "eval_summary.json").read_text())
    print_result(trained, summary["mean_return"])
    return int(summary["mean_return"] < SOLVED_RETURN)


def run_and_follow(name: str, *settings: str) -> dict[str, Any]:
    """Run the worker with the live view; returns MOSAIC's record of the run."""
    command = [MOSAIC, "run", "cleanrl", *settings, "--name", name, "--idempotency-key", f"{name} {time.time_ns()}"]
    ended = subprocess.run(command)
    if ended.returncode:
        sys.exit(ended.returncode)
    # The same idempotency key returns the same run: this does not start another one.
    found = subprocess.run([*command, "--detach", "--json"], capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(found.stdout)
    return run


def print_result(trained: dict[str, Any], mean_return: float) -> None:
    run_id, folder = trained["run_id"], Path(trained["run_dir"])
    is_solved = mean_return >= SOLVED_RETURN
    verdict = "CartPole is solved" if is_solved else f"CartPole is not solved: {SOLVED_RETURN:g} is expected"
    print(f"\nMean return of the 20 episodes: {mean_return:.1f} of 500. {verdict}.\n")
    print("Next steps:")
    for command, description in (
        ("runs", "list all runs"),
        (f"show {run_id}", "this run's history, files and latest values"),
        (f"tensorboard {run_id}", "its curves in a browser"),
        ("run cleanrl --help", "all algorithms and settings"),
        ("worker install eval", "then compare this policy with others on the same seeds:"),
        ("eval --env CartPole-v1 --operator rl:last --operator random", ""),
        ("frames RUN", "watch the environment of a run that is in progress"),
        ("daemon stop", "stop the daemon; runs in progress continue"),
    ):
        print(f"  {MOSAIC} {command:<36} {description}".rstrip())
    print(f"The run's files are in {folder}")


if __name__ == "__main__":
    sys.exit(main())
