"""The commands that a person types to a manual evaluation, one per line: `step 5`, `reset 1`, `act 0 left`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mosaic.catalog.typed_settings import parse_value
from mosaic.cli.verb import BadUsage
from mosaic.model.nearest import did_you_mean

if TYPE_CHECKING:
    from mosaic.client.evaluation_state import EvaluationState
    from mosaic.present.lane_keys import Questions

HELP = {
    "start": "begin an episode in every lane that has none",
    "step [N] [lane=0,2]": "take N steps, in all lanes or in these",
    "play [RATE]": "step by itself, RATE steps per second",
    "pause": "stop playing",
    "reset [LANE …] [seed=S]": "begin the episode again, or the next one",
    "act [LANE] [AGENT] ACTION": "answer a lane that asks for an action",
    "finish": "write the results and end the evaluation",
    "quit": "leave; the evaluation continues",
}
QUIT, ASK_FOR_HELP = "quit", "help"
Command = dict[str, Any]


def parse_command(line: str, evaluation: "EvaluationState", questions: "Questions") -> Command:
    """The command in a line. `questions`: what this terminal is asked."""
    word, *rest = line.split()
    word = word.lower()
    if word in ALONE:
        _refuse(word, rest)
        return {"cmd": word}
    if word not in PARSERS:
        known = [*PARSERS, *ALONE]
        hint = did_you_mean(word, known, 1) or f"Choose from: {', '.join(known)}."
        raise BadUsage(f"'{word}' is not a command. {hint}")
    return {"cmd": word, **PARSERS[word](rest, evaluation, questions)}


def lane_number(word: str, evaluation: "EvaluationState") -> int:
    """A lane by its number or its name."""
    for lane in evaluation.lanes:
        if word in (str(lane.index), lane.name):
            return lane.index
    if word.isdecimal() and not evaluation.lanes:
        return int(word)  # the lanes are not known yet; the conductor checks it
    known = ", ".join(f"{lane.index} ({lane.name})" for lane in evaluation.lanes) or "none yet"
    raise BadUsage(f"lane: there is no lane '{word}'. Choose from: {known}.")


def _step(words: list[str], evaluation: "EvaluationState", _: "Questions") -> Command:
    plain, named = _split("step", words, ("lane", "lanes", "count"))
    if len(plain) > 1:
        raise BadUsage(f"step: '{plain[1]}' is one word too many; write step 5 lane=0,2")
    count = _whole("count", plain[0] if plain else named.get("count", "1"))
    if not count:
        raise BadUsage("count: must be at least 1.")
    return {"count": count, **_lanes((named.get("lane") or named.get("lanes") or "").split(","), evaluation)}


def _play(words: list[str], _: "EvaluationState", __: "Questions") -> Command:
    plain, named = _split("play", words, ("rate",))
    text = plain[0] if plain else named.get("rate")
    if text is None:
        return {}
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < float("inf"):
        raise BadUsage(f"rate: must be a number of steps per second above 0, not '{text}'.")
    return {"rate": rate}


def _reset(words: list[str], evaluation: "EvaluationState", _: "Questions") -> Command:
    plain, named = _split("reset", words, ("seed", "lane", "lanes"))
    chosen = [*plain, *(named.get("lane") or named.get("lanes") or "").split(",")]
    seed = {"seed": _whole("seed", named["seed"])} if "seed" in named else {}
    return {**_lanes(chosen, evaluation), **seed}


def _act(words: list[str], evaluation: "EvaluationState", questions: "Questions") -> Command:
    from mosaic.client.evaluation import act_command

    if not words:
        raise BadUsage("act: name an action, as in: act 0 left")
    asked = questions.open()
    if len(words) > 1 and (words[0].isdecimal() or words[0] in [lane.name for lane in evaluation.lanes]):
        lane = lane_number(words[0], evaluation)
        asked, words = [request for request in asked if request.lane == lane], words[1:]
        if not asked:
            raise BadUsage(f"Lane {lane} does not ask for an action now.")
    if len(words) > 1 and (named := [request for request in asked if request.is_for(words[0])]):
        asked, words = named, words[1:]
    if not asked:
        raise BadUsage("No lane asks for an action now.")
    action = " ".join(words)  # a name may have spaces
    return act_command(asked[0], action if asked[0].choices else parse_value(action))


PARSERS: Mapping[str, Callable[[list[str], "EvaluationState", "Questions"], Command]] = {
    "step": _step,
    "play": _play,
    "reset": _reset,
    "act": _act,
}
ALONE = ("start", "pause", "finish", QUIT, ASK_FOR_HELP)


def _split(word: str, words: list[str], keys: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    named = dict(pair.split("=", 1) for pair in words if "=" in pair)
    for key in named:
        if key not in keys:
            raise BadUsage(f"{key}: {word} has no such argument. Choose from: {', '.join(keys)}.")
    return [plain for plain in words if "=" not in plain], named


def _lanes(words: list[str], evaluation: "EvaluationState") -> Command:
    chosen = [lane_number(word, evaluation) for word in words if word]
    return {"lanes": chosen} if chosen else {}


def _whole(key: str, text: str) -> int:
    if not text.isdecimal():
        raise BadUsage(f"{key}: must be a non-negative integer, not '{text}'.")
    return int(text)


def _refuse(word: str, rest: list[str]) -> None:
    if rest:
        raise BadUsage(f"{word}: takes no arguments, not '{rest[0]}'.")
