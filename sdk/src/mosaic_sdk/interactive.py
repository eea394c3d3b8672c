"""Interactive mode: another program decides when a step is taken. One JSON object per line, commands in, answers out.

    stdin                                                   stdout
    {"cmd": "reset", "seed": 3, "options": {…}}             {"type": "ready", …}
    {"cmd": "step"}  or  {"cmd": "step", "action": …}       {"type": "step", …}, and after the last step
                                                            {"type": "episode_done", …}
    {"cmd": "init_agent", "agent_id": …, "seed": …,         {"type": "agent_ready", "feedback": true, …}
     "env_id": …, "action_space": {…},
     "observation_space": {…}, "actions": […]}
    {"cmd": "select_action", "observation": …,              {"type": "action_selected", "action": …,
     "info": {…}, "action_mask": […], "agent_id": …,         "text": …, "report": {…}}
     "text": …, "image": …, "reward": …}
    {"cmd": "step_result", "agent_id": …, "reward": …,      {"type": "noted"}
     "terminated": …, "truncated": …, "info": {…}}          sent only if agent_ready asked for feedback
    {"cmd": "ping"}                                         {"type": "pong"}
    {"cmd": "stop"}                                         {"type": "stopped"}, and the process ends

This module owns the protocol; a worker supplies a Player (mosaic_sdk.player):

    return serve(lambda: AcmePlayer(config), run_id=config.run_id)

1. stdout holds nothing but answers: what libraries print goes to stderr. Each command is answered, in order.
2. The player is created for the first command that needs it, so a ping is answered before any library is imported.
3. A command that cannot be executed is answered with {"type": "error", "message": …}, and the next one is read.
4. A ConfigError (a checkpoint that cannot be loaded, say) is answered in the same way and ends the process with exit
   code 2, because no later command can succeed.
5. Steps and episodes are counted from 0. Frames travel by FastLane.
6. Large arrays in observations and infos are base64 (mosaic_sdk.operators.arrays); a player gets them decoded. Spaces
   are described as in mosaic_sdk.operators.spaces. Keys that a command need not have may be missing.
"""

import json
import os
import sys
from typing import IO, Any, Callable, Collection, Dict, List, Mapping, Optional, Protocol, Set, Tuple

from mosaic_sdk import names
from mosaic_sdk.cli import DONE, USAGE
from mosaic_sdk.config import ConfigError
from mosaic_sdk.emit import to_json
from mosaic_sdk.operators.arrays import decode
from mosaic_sdk.player import Agent, AgentId, CommandError, Decision, Player, Request, Step, plain

__all__ = [
    "Agent",
    "CommandError",
    "Decision",
    "Player",
    "Request",
    "Session",
    "Step",
    "parse_command",
    "plain",
    "serve",
    "serve_session",
]

Message = Dict[str, Any]
NO_EPISODE = "The episode is over, or none was begun. Send reset first."
_LARGEST_SEED = 2**31 - 1
_AGENT_KEYS = ("agent_id", "player_id", "game_name")


def serve(make_player: Callable[[], Player], *, run_id: str, first_seed: Optional[int] = None) -> int:
    """Answer commands until `stop` or the end of stdin; returns the exit code.

    `first_seed`: a reset without a seed gets this one, the next such reset the one after it, and so on. None: the
    player is given None.
    """
    return serve_session(Session(make_player, run_id=run_id, first_seed=first_seed))


def serve_session(session: "Answering") -> int:
    """The same for another protocol of one JSON object per line, such as that of the evaluation's env hosts."""
    commands, answers = _take_over_pipes()
    try:
        for line in commands:
            if line.strip() and not _reply(session, line.decode("utf-8", "replace"), answers):
                break
    except ConfigError as error:
        _write(answers, _error(str(error)))
        print(error, file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        pass  # the other program is gone, as at the end of stdin
    finally:
        session.close()
    return DONE


class Answering(Protocol):
    """Answers lines. A message of type `stopped` is the last one."""

    def answer(self, line: str) -> List[Message]: ...
    def close(self) -> None: ...


class Session:
    """One player, one episode at a time: the protocol without its pipes."""

    def __init__(self, make_player: Callable[[], Player], *, run_id: str, first_seed: Optional[int] = None) -> None:
        self._make_player = make_player
        self._run_id = run_id
        self._first_seed = first_seed
        self._player: Optional[Player] = None
        self._is_playing = False
        self._episode_index = -1
        self._step_index = 0
        self._return = 0.0
        self._first_actions: Dict[AgentId, int] = {}  # the action that the first element of an agent's mask is about
        self._in_episode: Set[AgentId] = set()  # the agents that have selected an action since their episode began
        self._do: Dict[str, Callable[[Message], List[Message]]] = {
            names.RESET: self._reset,
            names.STEP: self._step,
            names.INIT_AGENT: self._init_agent,
            names.SELECT_ACTION: self._select_action,
            names.STEP_RESULT: self._step_result,
            names.PING: lambda command: [{"type": names.PONG}],
            names.STOP: lambda command: [{"type": names.STOPPED, "run_id": self._run_id}],
        }

    def answer(self, line: str) -> List[Message]:
        """The messages that answer one line. ConfigError if no later command can succeed either."""
        try:
            command = parse_command(line, self._do)
            return self._do[command[names.CMD_KEY]](command)
        except CommandError as error:
            return [{**plain(error.fields), **_error(str(error))}]
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001  # the edge: a library may raise anything, and the next command can succeed
            _print_traceback()
            return [_error(f"{type(error).__name__}: {error}")]

    def close(self) -> None:
        player, self._player = self._player, None
        try:
            if player is not None:
                player.close()
        except Exception:  # noqa: BLE001  # the edge: every command was answered, and the exit code is about those
            _print_traceback()

    @property
    def player(self) -> Player:
        if self._player is None:
            self._player = self._make_player()
        return self._player

    def _reset(self, command: Message) -> List[Message]:
        index = self._episode_index + 1
        seed = _seed(command, None if self._first_seed is None else self._first_seed + index)
        options, player = _object(command, "options"), self.player
        try:
            fields = player.reset(seed, options)
        except (CommandError, ConfigError):
            raise
        except Exception:
            self._is_playing = False  # the state of the environment is unknown now
            raise
        self._is_playing, self._episode_index, self._step_index, self._return = True, index, 0, 0.0
        self._in_episode.clear()
        place = {"episode_index": index, "step_index": 0, "seed": seed}
        return [
            {"type": names.READY, "run_id": self._run_id, **plain(self.player.describe()), **place, **plain(fields)}
        ]

    def _step(self, command: Message) -> List[Message]:
        if not self._is_playing:
            raise CommandError(NO_EPISODE)
        try:
            step = self.player.step(command.get("action"))
        except (CommandError, ConfigError):
            raise
        except Exception:
            self._is_playing = False  # the state of the environment is unknown now
            raise
        self._return += float(step.reward)
        answers = [self._stepped(step)]
        self._step_index += 1
        if step.terminated or step.truncated:
            self._is_playing = False
            answers.append(self._episode_done(step))
        return answers

    def _stepped(self, step: Step) -> Message:
        return {
            "type": names.STEP,
            "episode_index": self._episode_index,
            "step_index": self._step_index,
            "action": plain(step.action),
            "reward": float(step.reward),
            "terminated": bool(step.terminated),
            "truncated": bool(step.truncated),
            "episode_reward": self._return,
            **plain(step.fields),
        }

    def _episode_done(self, step: Step) -> Message:
        return {
            "type": names.EPISODE_DONE,
            "run_id": self._run_id,
            "episode_index": self._episode_index,
            "total_reward": self._return,
            "num_steps": self._step_index,
            "terminated": bool(step.terminated),
            "truncated": bool(step.truncated),
        }

    def _init_agent(self, command: Message) -> List[Message]:
        agent = _agent(command, self._first_seed)
        fields = self.player.begin_agent(agent)
        self._in_episode.discard(agent.agent_id)
        self._first_actions[agent.agent_id] = int((agent.action_space or {}).get("start") or 0)
        about = {"type": names.AGENT_READY, "run_id": self._run_id, **plain(self.player.describe())}
        return [{**about, **_named(command, _AGENT_KEYS), "mode": "action_selector", **plain(fields)}]

    def _select_action(self, command: Message) -> List[Message]:
        request = _request(command, self._in_episode)
        chosen = self.player.select_action(request)
        decision = chosen if isinstance(chosen, Decision) else Decision(chosen)
        action, mask = plain(decision.action), request.action_mask
        first = self._first_actions.get(request.agent_id, 0)
        if isinstance(action, int) and mask is not None and not _allows(mask, action - first):
            raise CommandError(f"The policy chose action {action}, which action_mask does not allow.")
        self._in_episode.add(request.agent_id)
        about = {"type": names.ACTION_SELECTED, "run_id": self._run_id}
        more = {"text": decision.text, "report": plain(decision.report)}
        spoken = {name: value for name, value in more.items() if value}
        return [{**about, **_named(command, _AGENT_KEYS[:2]), "action": action, **spoken}]

    def _step_result(self, command: Message) -> List[Message]:
        result = {
            "reward": _reward(command),
            "terminated": bool(command.get("terminated")),
            "truncated": bool(command.get("truncated")),
            "info": _decoded(_object(command, "info") or {}, "info"),
        }
        self.player.step_result(_agent_id(command), result)
        return [{"type": names.NOTED, "run_id": self._run_id, **_named(command, _AGENT_KEYS[:1])}]


def _take_over_pipes() -> Tuple[IO[bytes], IO[bytes]]:
    """The two ends of the protocol. From here on descriptor 1 is stderr, and descriptor 0 is empty, for libraries."""
    sys.stdout.flush()
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return commands, answers


def _reply(session: Answering, line: str, answers: IO[bytes]) -> bool:
    """Answer one command; whether another one may follow."""
    messages = session.answer(line)
    for message in messages:
        _write(answers, message)
    return bool(messages[-1]["type"] != names.STOPPED)


def _write(answers: IO[bytes], message: Message) -> None:
    answers.write(to_json(message).encode("utf-8", "backslashreplace") + b"\n")
    answers.flush()


def _error(message: str) -> Message:
    return {"type": names.ERROR, "message": message}


def parse_command(line: str, known: Collection[str]) -> Message:
    """The object in a line; CommandError if it is not one of the known commands."""
    try:
        command = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"This is not JSON: {error}.") from None
    if not isinstance(command, dict) or not isinstance(command.get(names.CMD_KEY), str):
        raise CommandError('A command is an object with a "cmd", such as {"cmd": "reset", "seed": 1}.')
    if command[names.CMD_KEY] not in known:
        choices = ", ".join(sorted(known))
        raise CommandError(f"There is no command {command[names.CMD_KEY]!r}. Choose from: {choices}.")
    return command


def _agent(command: Message, first_seed: Optional[int]) -> Agent:
    actions = command.get("actions")
    if actions is not None and not isinstance(actions, list):
        raise CommandError(f"actions: must be a list with an object for each action, not {actions!r}.")
    return Agent(
        agent_id=_agent_id(command),
        seed=_seed(command, first_seed),
        env_id=str(command.get("env_id") or ""),
        action_space=_object(command, "action_space"),
        observation_space=_object(command, "observation_space"),
        actions=actions,
        command=command,
    )


def _request(command: Message, in_episode: Set[AgentId]) -> Request:
    mask, agent_id = command.get("action_mask"), _agent_id(command)
    if mask is not None and not isinstance(mask, list):
        raise CommandError(f"action_mask: must be a list with a 0 or 1 for each action, not {mask!r}.")
    return Request(
        observation=_decoded(command.get("observation"), "observation"),
        info=_decoded(_object(command, "info") or {}, "info"),
        action_mask=mask,
        agent_id=agent_id,
        is_first=bool(command.get("is_first")) or agent_id not in in_episode,
        reward=_reward(command),
        command=command,
    )


def _reward(command: Message) -> float:
    reward = command.get("reward")
    if reward is not None and (not isinstance(reward, (int, float)) or isinstance(reward, bool)):
        raise CommandError(f"reward: must be a number, not {reward!r}.")
    return float(reward or 0.0)


def _decoded(value: Any, name: str) -> Any:
    try:
        return decode(value)
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from None


def _agent_id(command: Message) -> AgentId:
    value = command.get("agent_id")
    if value is not None and not isinstance(value, (str, int)):
        raise CommandError(f"agent_id: must be a string or a number, not {value!r}.")
    return value


def _seed(command: Message, default: Optional[int]) -> Optional[int]:
    value = command.get("seed")
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST_SEED:
        raise CommandError(f"seed: must be an integer from 0 to 2^31 - 1, not {value!r}.")
    return value


def _object(command: Message, name: str) -> Optional[Dict[str, Any]]:
    value = command.get(name)
    if value is not None and not isinstance(value, dict):
        raise CommandError(f"{name}: must be an object, not {value!r}.")
    return value


def _named(command: Mapping[str, Any], keys: Tuple[str, ...]) -> Message:
    return {name: command[name] for name in keys if name in command}


def _allows(mask: List[Any], place: int) -> bool:
    return 0 <= place < len(mask) and bool(mask[place])


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()
