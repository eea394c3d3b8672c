"""One episode in an env host: what each answer says about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk.operators.arrays import encode
from mosaic_sdk.operators.digest import observation_digest
from mosaic_sdk.operators.spaces import illegal
from mosaic_sdk.player import CommandError

from eval_worker.envs.game import MASK, Outcome

TEXT, IMAGE = "text", "image"
VIEWS = (TEXT, IMAGE)


@dataclass(frozen=True)
class Options:
    """What a reset asks for: further views per agent, and the operators whose episodes are recorded, per agent."""

    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    record: Mapping[str, str] = field(default_factory=dict)
    episode_index: int = 0

    @classmethod
    def parse(cls, options: Any, agents: list[str], episode_index: int) -> "Options":
        options = {} if options is None else options
        if not isinstance(options, dict):
            raise CommandError(f"options: must be an object, not {options!r}.")
        index = options.get("episode_index", episode_index)
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise CommandError(f"options.episode_index: must be an integer from 0, not {index!r}.")
        return cls(_views(options.get("views"), agents), _record(options.get("record"), agents), index)

    def shows(self, agent: str, view: str) -> bool:
        return view in self.views.get(agent, ())

    @property
    def has_text(self) -> bool:
        return any(TEXT in views for views in self.views.values())


class Episode:
    def __init__(self, stage: Any, options: Options, recorder: Any) -> None:
        self._stage, self._game, self._family = stage, stage.game, stage.family
        self._options = options
        self._recorder = recorder
        self._returns = dict.fromkeys(stage.game.agents, 0.0)

    def begin(self) -> dict[str, Any]:
        digest = observation_digest(self._game.first_observation())
        turn = self._game.turn
        return {"turn": turn, "views": self._views(turn), "first_observation": digest, **self._scene()}

    def step(self, actions: Any) -> dict[str, Any]:
        """CommandError for an illegal action: nothing has happened then."""
        turn = self._game.turn
        chosen = self._checked(actions, turn)
        if self._recorder:
            self._recorder.act(chosen)
        outcome = self._game.step(chosen)
        for agent, reward in outcome.rewards.items():
            self._returns[agent] += reward
        if self._recorder:
            self._recorder.note(outcome)
        after = self._game.turn
        # After the last step, those who acted see what it led to.
        return {**self._told(outcome), "turn": after, "views": self._views(after or turn), **self._end(outcome, after)}

    def abandon(self) -> None:
        if self._recorder:
            self._recorder.close()

    def _checked(self, actions: Any, turn: list[str]) -> dict[str, Any]:
        if not isinstance(actions, dict):
            raise CommandError('actions: must be an object such as {"agent_0": 1}.')
        if actions.keys() != set(turn):
            raise CommandError(
                f"actions: must have one for {_listed(turn)}, not for {_listed(list(actions)) or 'no one'}."
            )
        return {agent: self._as_action(agent, actions[agent]) for agent in turn}

    def _as_action(self, agent: str, given: Any) -> Any:
        described, mask = self._stage.action_spaces[agent], self._game.mask(agent)
        reason = illegal(described, given, None if mask is None else mask.tolist())
        if reason:
            raise CommandError(f"actions.{agent}: {reason}")
        return _as_element(self._game.action_space(agent), given)

    def _told(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "rewards": dict(outcome.rewards),
            "terminated": dict(outcome.terminated),
            "truncated": dict(outcome.truncated),
        }

    def _end(self, outcome: Outcome, turn: list[str]) -> dict[str, Any]:
        if turn:
            return {"done": False, "success": None, **self._scene()}
        success = None if self._game.is_multi_agent else self._family.success(outcome, self._game.agents[0])
        winners = {"winners": self._winners()} if self._family.is_competitive and self._game.is_multi_agent else {}
        return {"done": True, "success": success, **winners, **self._scene()}

    def _winners(self) -> list[str]:
        """The agents with the highest return; none if all have the same."""
        best = max(self._returns.values())
        winners = [agent for agent, total in self._returns.items() if total == best]
        return [] if len(winners) == len(self._returns) else winners

    def _scene(self) -> dict[str, Any]:
        return {"text": self._family.scene()} if self._options.has_text else {}

    def _views(self, agents: list[str]) -> dict[str, Any]:
        image = self._image() if any(self._options.shows(agent, IMAGE) for agent in agents) else None
        return {agent: self._view(agent, image) for agent in agents}

    def _view(self, agent: str, image: str | None) -> dict[str, Any]:
        observation, mask = self._game.observation(agent), self._game.mask(agent)
        info = {key: encode(value) for key, value in self._game.info(agent).items() if mask is None or key != MASK}
        view = {
            "observation": encode(observation),
            "info": info,
            "action_mask": None if mask is None else [int(is_allowed) for is_allowed in mask],
        }
        moves = self._family.moves(agent, mask)
        if moves is not None:
            view["actions"] = moves
        if self._options.shows(agent, TEXT):
            view["text"] = self._family.text(agent, observation)
        if image is not None and self._options.shows(agent, IMAGE):
            view["image"] = image
        return view

    def _image(self) -> str | None:
        from eval_worker.envs.picture import as_png

        frame = self._game.render()
        return None if frame is None else as_png(frame)


def _as_element(space: Any, given: Any) -> Any:
    """Plain data as an element of a Gymnasium space."""
    kind = type(space).__name__
    if kind == "Dict":
        return {key: _as_element(part, given[key]) for key, part in space.spaces.items()}
    if kind == "Tuple":
        return tuple(_as_element(part, one) for part, one in zip(space.spaces, given, strict=True))
    if kind == "Discrete" or isinstance(given, str):
        return given
    import numpy as np

    return np.asarray(given, dtype=space.dtype).reshape(space.shape)


def _views(value: Any, agents: list[str]) -> dict[str, tuple[str, ...]]:
    wanted = dict.fromkeys(agents, value or []) if not isinstance(value, dict) else value
    for agent, views in wanted.items():
        if not isinstance(views, list) or any(view not in VIEWS for view in views):
            raise CommandError(f"options.views: must be a list of {' and '.join(VIEWS)}, not {views!r}.")
        _check_agent("options.views", agent, agents)
    return {agent: tuple(views) for agent, views in wanted.items()}


def _record(value: Any, agents: list[str]) -> dict[str, str]:
    wanted = {agent: agent for agent in value} if isinstance(value, list) else value or {}
    if not isinstance(wanted, dict) or not all(isinstance(name, str) and name for name in wanted.values()):
        raise CommandError('options.record: must be an object such as {"agent_0": "operator"}.')
    for agent in wanted:
        _check_agent("options.record", agent, agents)
    return wanted


def _check_agent(key: str, agent: Any, agents: list[str]) -> None:
    if agent not in agents:
        raise CommandError(f"{key}: there is no agent {agent!r}. Choose from: {', '.join(agents)}.")


def _listed(agents: list[str]) -> str:
    return ", ".join(agents)
