"""One evaluation: every episode of the plan that an earlier run has not finished, then the table."""

import os
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.evaluation import Evaluation
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from balrog_worker import telemetry
from balrog_worker.agents import LEDGER, Agent, make_agent
from balrog_worker.analytics import write_analytics
from balrog_worker.config import BalrogConfig
from balrog_worker.episode import Trajectory, play
from balrog_worker.fastlane import shown
from balrog_worker.games import Game, make_game
from balrog_worker.journal import FILE_NAME, MUST_AGREE, VERSION, Journal, Row, read_journal
from balrog_worker.plan import Episode, make_plan
from balrog_worker.results import summarise, write_results
from balrog_worker.tasks import Task


class BalrogRuntime:
    """Builds the parts of an evaluation and plays it."""

    def __init__(self, config: BalrogConfig) -> None:
        self._config = config
        self._run_dir = os.environ.get(WorkerEnv.RUN_DIR) or os.getcwd()
        self._settings = {name: getattr(config, name) for name in MUST_AGREE}
        self._plan = make_plan(config)
        self._past = self._read_past()
        self._rows: list[Row] = []
        self._steps = 0
        self._found = Evaluation(run_id=config.run_id, worker="balrog", env_id="balrog", algo=config.agent)

    def run(self) -> dict[str, Any]:
        """The payload of run_completed."""
        todo = [episode for episode in self._plan.episodes if episode.key not in self._past]
        journal = Journal(self._journal_path)
        journal.write("header", version=VERSION, settings=self._settings)
        emit.checkpoint_saved(journal.path)
        for episode in self._plan.episodes:
            if episode.key in self._past:
                self._keep(episode, self._past[episode.key], journal, is_replayed=True)
        # At most; an episode that ends early takes its unused steps from it.
        self._steps = sum(self._config.max_steps_of(episode.task) for episode in todo)
        with Heartbeat(self._config.heartbeat_s, total=lambda: self._steps) as heart:
            # Also if nothing is left: a key or a model that cannot be used is an error of the run.
            agent = make_agent(self._config, self._run_dir, self._former_ledger)
            try:
                self._play_all(todo, agent, journal, heart)
            finally:
                agent.close()
                journal.close()
        return self._finish()

    def _play_all(self, todo: list[Episode], agent: Agent, journal: Journal, heart: Heartbeat) -> None:
        game: Game | None = None
        task: Task | None = None
        try:
            for episode in todo:
                if game is None or episode.task != task:
                    if game is not None:
                        game.close()
                    game, task = shown(make_game(episode.task, self._config, self._run_dir)), episode.task
                with Trajectory(self._run_dir, episode, self._config.trajectories) as trajectory:
                    row = play(episode, game, agent, heart, trajectory)
                self._steps -= self._config.max_steps_of(episode.task) - row["length"]
                self._keep(episode, row, journal, is_replayed=False)
        finally:
            if game is not None:
                game.close()

    def _keep(self, episode: Episode, row: Row, journal: Journal, *, is_replayed: bool) -> None:
        """Into the journal first: what is reported was then certainly not lost."""
        fields = {name: value for name, value in row.items() if name != "kind"}
        if not is_replayed or self._config.resume_from:
            journal.write("episode", **fields)
        self._rows.append(fields)
        self._found.rows.append({"episode_index": episode.index, **fields})
        telemetry.episode_over(episode, fields, is_replayed=is_replayed)
        summary = self._summary()
        telemetry.means(summary, len(self._rows))
        write_results(self._run_dir, summary)

    def _finish(self) -> dict[str, Any]:
        summary = self._summary()
        write_results(self._run_dir, summary)
        average = summary["average"]
        self._found.write(
            self._run_dir, progression=average, environments=summary["environments"], model=self._config.model
        )
        write_analytics(self._config)
        return {"episodes": len(self._rows), "progression": average["progression"]}

    def _summary(self) -> dict[str, Any]:
        about = {"run_id": self._config.run_id, "agent": self._config.agent, "model": self._config.model}
        return summarise(self._rows, len(self._plan.episodes), {**about, "left_out": self._plan.left_out})

    def _read_past(self) -> dict[tuple[str, int], Row]:
        """Of the run that this one continues, and of an earlier start of this one."""
        past = read_journal(self._config.resume_from, self._settings) if self._config.resume_from else {}
        own = read_journal(self._journal_path, self._settings) if os.path.exists(self._journal_path) else {}
        return {**past, **own}

    @property
    def _journal_path(self) -> str:
        folder = os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(self._run_dir, CHECKPOINTS)
        return os.path.join(folder, FILE_NAME)

    @property
    def _former_ledger(self) -> str:
        if not self._config.resume_from:
            return ""
        run = os.path.dirname(os.path.dirname(os.path.abspath(self._config.resume_from)))
        return os.path.join(run, LEDGER)
