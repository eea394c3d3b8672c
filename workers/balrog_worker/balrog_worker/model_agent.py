"""The agent that asks a language model, through any OpenAI-compatible endpoint."""

import hashlib
import json
import os
import time
from typing import Any

from mosaic_sdk.cli import WorkFailed
from mosaic_sdk.llm.credentials import load_key
from mosaic_sdk.llm.endpoint import Endpoint
from mosaic_sdk.llm.faults import EndpointError
from mosaic_sdk.llm.greeting import greet
from mosaic_sdk.llm.ledger import Former, Ledger
from mosaic_sdk.llm.record import Record
from mosaic_sdk.llm.slots import Slots
from mosaic_sdk.player import CommandError

from balrog_worker.agents import LEDGER, NAME, Agent, Decision
from balrog_worker.config import CHAIN_OF_THOUGHT, BalrogConfig
from balrog_worker.games.game import Game, View
from balrog_worker.plan import Episode
from balrog_worker.prompt import Prompt, Turn, response_format

_LONGEST_TEXT = 4000  # of what is kept of an answer


class ModelAgent(Agent):
    """Asks a language model. What a former ledger answers is not asked again."""

    def __init__(self, config: BalrogConfig, run_dir: str, former_ledger: str) -> None:
        self._config = config
        key = load_key(config)
        self._former = Former(former_ledger)
        self._ledger = Ledger(os.path.join(run_dir, LEDGER))
        self._endpoint = Endpoint(config, key, Slots("", NAME, 1))
        try:
            self._server = greet(self._endpoint, config, key.is_set)
        except CommandError as error:
            self.close()
            raise WorkFailed(str(error)) from None

    def begin(self, episode: Episode, game: Game) -> None:
        self._episode, self._game = episode, game
        self._prompt = Prompt(self._config, game)

    def act(self, view: View, step: int) -> Decision:
        body = self._body(view)
        place = self._place(step, body)
        row = self._former.take(place) or self._ask(body, place)
        self._ledger.append(row)
        if row["error"]:
            raise WorkFailed(
                f"The endpoint failed: {row['error']}. Finished episodes are kept; when it works again, continue with: "
                f"mosaic resume {self._config.run_id}"
            )
        is_valid = not row["fallback"]
        thought = _thought(row["text"]) if self._config.agent == CHAIN_OF_THOUGHT else ""
        self._prompt.remember(Turn(view, row["action"], thought, not is_valid))
        return Decision(row["action"], is_valid, row["text"], row["tokens_in"], row["tokens_out"], row["cost"])

    def close(self) -> None:
        self._endpoint.close()
        self._ledger.close()

    def _ask(self, body: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
        record = Record(self._config, place)
        try:
            reply = self._endpoint.complete(body, record, time.monotonic() + self._config.decision_timeout_s)
        except EndpointError as error:
            return record.row(action=None, name=None, text="", error=f"{self._config.base_url}: {error}")
        record.answered(reply)
        text = reply.content[:_LONGEST_TEXT]
        action = self._game.actions.find(reply.content)
        if action is None:
            record.was_illegal("no_action")
            return record.row(action=self._game.default, name=self._game.default, text=text, fallback="default")
        return record.row(action=action, name=action, text=text)

    def _body(self, view: View) -> dict[str, Any]:
        config = self._config
        body = {
            "model": config.model,
            "messages": self._prompt.messages(view),
            config.max_tokens_name: config.max_tokens,
            "temperature": config.temperature,
            "seed": config.sampling_seed,
            "extra_body": config.extra_body or None,
            "response_format": response_format(config, self._game),
        }
        return {name: value for name, value in body.items() if value is not None}

    def _place(self, step: int, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "run": self._config.run_id,
            "operator": NAME,
            "lane": str(self._episode.task),
            "agent_id": "agent_0",
            "env_id": str(self._episode.task),
            "episode_index": self._episode.index,
            "seed": self._episode.seed,
            "step_index": step,
            "prompt_hash": hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(),
            "server": self._server,
        }


def _thought(text: str) -> str:
    """What was said before the action."""
    return text.rpartition("ACTION:")[0].strip() or text.strip()
