"""What an evaluation prints: steps, episodes, and what happens to its lanes."""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk import emit

from eval_worker.desk import Question
from eval_worker.game import Turn
from eval_worker.lane import Lane
from eval_worker.tally import Tally

WAITING, PLAYING, PAUSED, DONE = "waiting", "playing", "paused", "done"


class Telemetry:
    """Lines in the order in which they are called; only the conductor's thread does so."""

    def __init__(self, emitter: emit.Emitter, shows_views: bool) -> None:
        """`shows_views`: steps carry the environment as text, for a person who follows them."""
        self._emitter = emitter
        self._shows_views = shows_views

    def started(self, env_id: str, mode: str, lanes: list[Lane], seeds: list[int]) -> None:
        described = [{**lane.plan.describe(), "episodes": len(lane.plan.episodes)} for lane in lanes]
        self._say("evaluation_started", env_id=env_id, mode=mode, lanes=described, seeds=seeds)

    def state(self, state: str) -> None:
        self._say("evaluation_state", state=state)

    def ready(self, lane: Lane, episode: Tally) -> None:
        opening = episode.opening
        self._say("lane_ready", **_place(lane, episode), first_observation=opening.first_observation, text=opening.text)

    def turn(self, lane: Lane, episode: Tally, turn: Turn) -> None:
        """The steps of all agents; `episode` has counted them."""
        for number, act in enumerate(turn.acts, 1):
            more: dict[str, Any] = {"operator": act.operator} if episode.opening.is_multi_agent else {}
            more.update({"text": act.text} if act.text else {})
            if self._shows_views and turn.view and number == len(turn.acts):
                more["view"] = turn.view
            self._emitter.step(
                episode.steps - 1,
                act.reward,
                env_index=lane.index,
                agent_id=act.agent_id,
                episode_index=episode.index,
                terminated=act.terminated,
                truncated=act.truncated,
                episode_seed=episode.seed,
                action=act.action,
                action_name=act.action_name,
                episode_return=episode.scores[act.agent_id].total,
                latency_ms=act.latency_ms,
                **more,
            )

    def episode(self, lane: Lane, row: Mapping[str, Any]) -> None:
        more = {key: row[key] for key in ("operator", "success", "reason", "failed", "decision_ms", "duration_s")}
        self._emitter.episode(
            row["episode_index"],
            row["return"],
            row["length"],
            env_index=lane.index,
            agent_id=row["agent_id"],
            terminated=row["terminated"],
            truncated=row["truncated"],
            lane=lane.name,
            episode_seed=row["seed"],
            **more,
        )

    def lane_done(self, lane: Lane, episode: Tally) -> None:
        returns = episode.returns
        total: Any = returns if episode.opening.is_multi_agent else next(iter(returns.values()), 0.0)
        self._say("lane_done", **_place(lane, episode), **{"return": total})

    def lane_failed(self, lane: Lane, episode: Tally, reason: str, is_given_up: bool) -> None:
        more = {"given_up": True} if is_given_up else {}
        self._say("lane_failed", **_place(lane, episode), reason=reason, **more)

    def requested(self, question: Question) -> None:
        self._say(
            "action_requested",
            lane=question.lane,
            agent_id=question.agent_id,
            operator=question.operator,
            request=question.request,
            episode_index=question.episode_index,
            step_index=question.step_index,
            text=question.text,
            actions=question.choices(),
            deadline_s=question.time_limit_s,
        )

    def differs(self, seed: int, digests: Mapping[str, str]) -> None:
        self._say("observations_differ", seed=seed, lanes=dict(digests))

    def answered(self, command: Mapping[str, Any], ok: bool, message: str, more: Mapping[str, Any]) -> None:
        self._say("command_done", seq=command.get("seq"), cmd=command.get("cmd"), ok=ok, message=message, **more)

    def _say(self, event: str, **payload: Any) -> None:
        self._emitter.lifecycle(event, payload)


def _place(lane: Lane, episode: Tally) -> dict[str, Any]:
    return {"lane": lane.index, "name": lane.name, "episode_index": episode.index, "seed": episode.seed}
