"""An env host: one environment in a process of its own, driven over pipes. python -m eval_worker --host CONFIG

CONFIG is a JSON file: {"run_id": "…", "lane": "a", "env": {"id": …, "kwargs": {}, "wrappers": [], "api": "auto"},
"demonstrations": "folder for recorded episodes, or empty"}

    {"cmd": "describe"}                                     {"type": "described", …}
    {"cmd": "reset", "seed": 3, "options": {                {"type": "ready", "agents": […], "turn": […], "views": {…}}
        "views": ["text"], "record": {"agent_0": "me"},
        "episode_index": 0}}
    {"cmd": "step", "actions": {"agent_0": 2}}              {"type": "step", "rewards": {…}, "done": false, …}
    {"cmd": "end"}                                          {"type": "ended"}: the episode is not played to its end
    {"cmd": "ping"}, {"cmd": "stop"}                        as in mosaic_sdk.interactive

An illegal action is answered with an error, and the episode continues. An error with `fatal` means that the environment
itself failed: the episode is lost, and only a reset helps.
"""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic_sdk import names
from mosaic_sdk.cli import USAGE
from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import read_json
from mosaic_sdk.interactive import NO_EPISODE, parse_command, serve_session
from mosaic_sdk.player import CommandError

from eval_worker.envs.choice import EnvChoice
from eval_worker.envs.episode import Episode, Options

Message = dict[str, Any]
DESCRIBE, DESCRIBED, END, ENDED = "describe", "described", "end", "ended"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m eval_worker --host CONFIG", file=sys.stderr)
        return USAGE
    try:
        config = read_json(arguments[0])
        host = Host(config)
    except (OSError, ValueError) as error:
        print(f"{arguments[0]} cannot be read: {error}", file=sys.stderr)
        return USAGE
    return serve_session(host)


class Host:
    """The protocol without its pipes. The environment is created for the first command that needs it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._stage: Any = None
        self._episode: Episode | None = None
        self._count = 0
        self._do: dict[str, Callable[[Message], Message]] = {
            DESCRIBE: self._describe,
            names.RESET: self._reset,
            names.STEP: self._step,
            END: self._end,
            names.PING: lambda command: {"type": names.PONG},
            names.STOP: lambda command: {"type": names.STOPPED, "run_id": str(config.get("run_id", ""))},
        }

    def answer(self, line: str) -> list[Message]:
        """ConfigError if no later command can succeed either."""
        try:
            command = parse_command(line, self._do)
            return [self._do[command[names.CMD_KEY]](command)]
        except CommandError as error:
            return [{"type": names.ERROR, "message": str(error)}]
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001  # the edge: an environment is third-party code and may raise anything
            traceback.print_exc()
            self._episode = None  # the state of the environment is unknown now
            return [{"type": names.ERROR, "message": f"{type(error).__name__}: {error}", "fatal": True}]

    def close(self) -> None:
        try:
            self._abandon()
            if self._stage is not None:
                self._stage.game.close()
        except Exception:  # noqa: BLE001  # the edge: every command was answered
            traceback.print_exc()

    @property
    def stage(self) -> Any:
        if self._stage is None:
            from eval_worker.envs.stage import Stage  # imports the environments' libraries, which takes a second

            self._stage = Stage(EnvChoice.parse(self._config.get("env")))
        return self._stage

    def _describe(self, command: Message) -> Message:
        return {"type": DESCRIBED, **self.stage.describe(), "can_render": self.stage.game.can_render}

    def _reset(self, command: Message) -> Message:
        seed = _seed(command.get("seed"))
        stage = self.stage
        options = Options.parse(command.get("options"), stage.game.agents, self._count)
        self._abandon()
        stage.game.reset(seed)
        self._count += 1
        self._episode = Episode(stage, options, self._recorded(options, seed))
        return {"type": names.READY, "seed": seed, **stage.describe(), **self._episode.begin()}

    def _step(self, command: Message) -> Message:
        if self._episode is None:
            raise CommandError(NO_EPISODE)
        answer = self._episode.step(command.get("actions"))
        if answer["done"]:
            self._episode = None
        return {"type": names.STEP, **answer}

    def _end(self, command: Message) -> Message:
        self._abandon()
        return {"type": ENDED}

    def _recorded(self, options: Options, seed: int | None) -> Any:
        folder = self._config.get("demonstrations")
        if not folder or not options.record:
            return None
        from eval_worker.envs.recorder import Recorder

        lane = str(self._config.get("lane") or "lane")
        return Recorder(Path(folder), self.stage, options, lane, seed)

    def _abandon(self) -> None:
        """An episode that was not played to its end is recorded up to here."""
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.abandon()


def _seed(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise CommandError(f"seed: must be an integer from 0 to 2^31 - 1, not {value!r}.")
    return value
