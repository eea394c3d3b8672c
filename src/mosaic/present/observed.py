"""What was heard of the libraries of a script, in words: which hook, and how much it reported."""

from typing import TYPE_CHECKING, Any

from mosaic.model.states import RunState
from mosaic.present.scores import count
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

LIBRARIES = "TensorBoard, wandb, MLflow, Stable-Baselines3, RLlib, Gymnasium, PettingZoo"
EXAMPLE = '{"event_type": "metric", "name": "loss", "value": 0.5, "step": 10}'


def is_observed(run: "Run") -> bool:
    """Whether it was asked for, as far as the config says. Only of a run that has its config."""
    worker = _worker(run)
    if worker.get("observe") is not None:
        return worker["observe"] is True
    return bool(worker.get("script") or worker.get("python")) or bool(run.summary.observed)


def observed_lines(run: "Run") -> list[str]:
    """`metrics: 40 lines, by torch.utils.tensorboard.SummaryWriter`, or why there is nothing. Empty for a worker."""
    if run.summary.observed:
        return [_line(run, what, hooks) for what, hooks in _hooks(run).items()]
    worker = _worker(run)
    if worker.get("observe") is False and (worker.get("script") or worker.get("python")):
        return ["Nothing was observed, as requested (--no-observe, or a Python older than 3.9)."]
    if not is_observed(run):
        return []
    if not run.state.is_over:
        return ["Nothing yet."]
    return [nothing_observed(run)]


def nothing_observed(run: "Run") -> str:
    if run.summary.events:
        return "Nothing was observed: all telemetry is what the script prints itself."
    if run.state is not RunState.TERMINATED:
        return "Nothing was observed before it ended."
    return (
        f"Nothing was observed: the script uses none of {LIBRARIES}. Use one of them, or print lines such as "
        f"{EXAMPLE}; see docs/howto/scripts.md."
    )


def _hooks(run: "Run") -> dict[str, list[str]]:
    hooks: dict[str, list[str]] = {}
    for what, by in run.summary.observed:
        hooks.setdefault(printable(what), []).append(printable(by))
    return hooks


def _line(run: "Run", what: str, hooks: list[str]) -> str:
    s = run.summary
    counts = {
        "metrics": count(s.metrics, "line"),
        "episodes": f"{s.episodes:,}",
        "checkpoints": f"{s.checkpoints:,}",
        "progress": f"{count(s.env_steps, 'env step')}{f' of {run.total_steps:,}' if run.total_steps else ''}",
    }
    much = f"{counts[what]}, " if what in counts else ""
    return f"{what}: {much}by {', '.join(hooks)}"


def _worker(run: "Run") -> dict[str, Any]:
    return ((run.config or {}).get("metadata") or {}).get("worker") or {}
