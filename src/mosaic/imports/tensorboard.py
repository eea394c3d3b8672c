"""TensorBoard's event files: those of CleanRL, Stable-Baselines3, Lightning and everything with a SummaryWriter.

Every folder with event files is a run, as in TensorBoard.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mosaic.imports.block import Block, Episode, Gathering
from mosaic.imports.event_values import Decoder, Point
from mosaic.imports.files import Changed, read_yaml
from mosaic.imports.source import Found, Source
from mosaic.imports.tfrecord import read_records
from mosaic.imports.values import flatten, typed

HYPERPARAMETERS = "hyperparameters/text_summary"  # CleanRL's table of settings, in Markdown
RETURN, LENGTH = "charts/episodic_return", "charts/episodic_length"  # CleanRL's, one point per episode
# The names of CleanRL's scripts, which are its default for exp_name. Another exp_name says nothing of the algorithm.
CLEANRL = frozenset(
    f"{algo}{kind}{end}"
    for algo in ("ppo", "dqn", "c51", "ddpg", "td3", "sac", "rpo", "ppg", "qdagger_dqn", "rainbow", "pqn", "ppo_rnd")
    for kind in ("", "_atari", "_atari_lstm", "_atari_multigpu", "_atari_envpool", "_continuous_action", "_procgen",
                 "_envpool", "_pettingzoo_ma_atari", "_atari_envpool_xla_jax", "_atari_envpool_async",
                 "_atari_lstm_envpool", "_trxl")
    for end in ("", "_jax", "_impalacnn", "_jax_impalacnn", "_scan")
)  # fmt: skip
SB3 = frozenset({"A2C", "DDPG", "DQN", "HER", "PPO", "SAC", "TD3", "ARS", "QRDQN", "RecurrentPPO", "TQC", "TRPO"})


def event_files(names: "list[str] | tuple[str, ...]") -> list[str]:
    """The event files among these, in the order in which they were begun."""
    return sorted(name for name in names if "tfevents" in name and not name.endswith((".profile-empty", ".tmp")))


class TensorBoard(Source):
    format = "tensorboard"

    def __init__(self, found: Found, cursor: dict[str, Any]) -> None:
        super().__init__(found, cursor)
        self._decoder = Decoder()
        self._gathering = Gathering()
        self._open_return: float | None = self.state.get("open_return")
        self._tags: set[str] = set()

    def blocks(self) -> Iterator[Block]:
        for name in event_files(self.found.files):
            try:
                yield from self._file(name)
            except (OSError, Changed) as error:
                self.fail(name, error)
        self._finish()

    def _file(self, name: str) -> Iterator[Block]:
        for records in read_records(self.path(name), self.position(name)):
            damaged = self._decoder.damaged
            points = self._decoder.points(records) if records.starts else []
            if more := self._decoder.damaged - damaged:
                many = "1 damaged record was" if more == 1 else f"{more:,} damaged records were"
                self.problem(f"{self.path(name)}: {many} left out")
            if records.problem:
                self.problem(f"{self.path(name)}: {records.problem}; what comes before it was imported")
            self._gather(points)
            self.advance(name, records.end)
            self.state["open_return"] = self._open_return
            yield self._gathering.take()
        self.about.seen(self._decoder.first_wall)

    def _gather(self, points: list[Point]) -> None:
        gather, add = self._gathering, self._gathering.add
        if points:
            self.about.seen(points[0][0] / 1e9)
            self.about.seen(points[-1][0] / 1e9)
        known = self._tags
        for ts_ns, step, tag, value in points:
            if tag not in known:
                if not self.is_name(tag):
                    continue
                known.add(tag)
            add(ts_ns, step, tag, value)
            if tag == RETURN:
                self._open_return = value
            elif tag == LENGTH and self._open_return is not None:
                gather.add_episode(Episode(ts_ns, self._open_return, _whole(value), step))
                self._open_return = None

    def _finish(self) -> None:
        settings = read_yaml(self.path("hparams.yaml"))  # Lightning's
        settings |= _table(self._decoder.texts.get(HYPERPARAMETERS, ""))
        self.about.settings = flatten(settings)
        if algo := self._algo(settings):
            self.about.settings.setdefault("algo", algo)
        total = settings.get("total_timesteps")
        self.about.total_steps = total if isinstance(total, int) and 0 < total < 2**63 else 0
        self.about.artifacts = {"tensorboard": {"log_dir": str(self.found.path)}, **checkpoints_in(self.found.path)}

    def _algo(self, settings: dict[str, Any]) -> str:
        name = settings.get("exp_name")
        if isinstance(name, str) and name in CLEANRL:
            return name
        word = self.found.path.name.rpartition("_")[0]
        is_sb3 = word in SB3 and ("time/fps" in self._tags or "rollout/ep_rew_mean" in self._tags)
        return word.lower() if is_sb3 else ""


def checkpoints_in(folder: Path) -> dict[str, Any]:
    """The models beside the event files, for analytics.json."""
    try:
        files = sorted(
            str(path) for path in folder.iterdir() if path.suffix in (".cleanrl_model", ".zip", ".pt", ".pth")
        )
    except OSError:
        files = []
    return {"checkpoints": {"directory": str(folder), "files": files[:200]}} if files else {}


def _table(text: str) -> dict[str, Any]:
    """The settings in CleanRL's table: lines `|key|value|` below a heading."""
    rows = [line.strip().strip("|").split("|", 1) for line in text.splitlines() if line.strip().startswith("|")]
    return {row[0].strip(): typed(row[1]) for row in rows[2:2002] if len(row) == 2 and row[0].strip()}


def _whole(value: float) -> int:
    return int(value) if 0 <= value < 2**63 else 0
