"""Draws the screen of an evaluation: its lanes side by side, what a person is asked, and the keys."""

import re
import textwrap
import time
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.console import ConsoleDimensions, Group
from rich.text import Text

from mosaic.cli.eval_commands import HELP as COMMANDS
from mosaic.cli.runs import SHORT_ID
from mosaic.client.lanes import ASKING, DONE, FAILED, PLAYING, AgentState, LaneState
from mosaic.present.durations import format_duration
from mosaic.present.lane_keys import legend
from mosaic.present.states import explain
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.cli.eval_session import Session
    from mosaic.cli.eval_state import ScreenState
    from mosaic.client.lanes import ActionRequest

NARROWEST, LOWEST = 24, 6  # columns and rows of a lane
HEAD, MAP = 4, 3  # rows of a lane's head, and of its map while a person is asked in another row
GAP = " │ "
COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
SENTENCE = re.compile(r"[A-Za-z]{3}.* [A-Za-z]")
STYLE = {PLAYING: "green", ASKING: "yellow", DONE: "blue", FAILED: "red"}
MANUAL_KEYS = ("space step", "p play", "+- rate", "r reset", "n next", "0-9 lane", ": type", "? help", "q quit")
SCRIPT_KEYS = (": type", "? help", "q quit")
HELP = {
    "space, s": "step once",
    "p": "play or pause",
    "+ -": "play faster or slower",
    "r": "begin the episode again, or the next one if it is over",
    "n": "begin the next episode in the lanes that have finished theirs",
    "0-9": "choose a lane for step and reset; again: all lanes",
    ":": "type a command, see below",
    "q, Esc": "leave, or finish and show the results",
}


def draw(state: "ScreenState", session: "Session", size: ConsoleDimensions) -> Group:
    """At most as many lines as the terminal has, none longer than it is wide."""
    bottom = _bottom(state, size)
    room = max(0, size.height - len(bottom) - 1)
    body = _help(size.width) if state.is_help else _lanes(state, session, ConsoleDimensions(size.width, room))
    lines = [_title(state, session), *body[:room], *[Text()] * (room - len(body)), *bottom]
    return Group(*(_fitted(line, size.width) for line in lines[: size.height]))


def _fitted(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line


def _title(state: "ScreenState", session: "Session") -> Text:
    evaluation = state.evaluation
    title = Text(printable(evaluation.env_id or session.run.name), "bold")
    facts = [evaluation.state or str(session.run.state).lower()]
    if state.is_manual:
        facts.append(f"{number(state.rate)} steps/s")
        facts.append("all lanes" if state.chosen is None else f"lane {state.chosen}")
    elif evaluation.eta_s and not session.run.state.is_over:
        facts.append(f"{format_duration(evaluation.eta_s)} left")
    return title.append("  " + " · ".join(facts)).append(f"  {session.run.run_id[:SHORT_ID]}", "dim")


# ---- the lanes


def _lanes(state: "ScreenState", session: "Session", size: ConsoleDimensions) -> list[Text]:
    lanes = state.evaluation.lanes
    if not lanes:
        return [Text(), Text(explain(session.run))]
    columns = max(1, min(len(lanes), (size.width + len(GAP)) // (NARROWEST + len(GAP))))
    rows = max(1, min(-(-len(lanes) // columns), size.height // LOWEST))
    columns = min(columns, -(-len(lanes) // rows))  # four lanes as 2 + 2, not as 3 + 1
    visible, others = _visible(state, columns * rows)
    width = (size.width - len(GAP) * (columns - 1)) // columns
    table = [visible[start : start + columns] for start in range(0, len(visible), columns)]
    lines = []
    for row, height in zip(table, _heights(table, state, size.height - len(others)), strict=True):
        panels = [_panel(lane, state, width, height) for lane in row]
        lines += [_side_by_side(parts, width) for parts in zip_longest(*panels)]
    return [*lines, *others]


def _heights(table: list[list[LaneState]], state: "ScreenState", room: int) -> list[int]:
    """Equal heights, unless a person is asked: then the person's row has all lines that the others can spare."""
    heights = [max(1, room // len(table))] * len(table)
    for place, row in enumerate(table):
        if len(table) > 1 and state.request and any(lane.index == state.request.lane for lane in row):
            heights = [max(LOWEST, min(height, MAP + HEAD)) for height in heights]
            heights[place] = max(1, room - sum(heights) + heights[place])
    return heights


def _visible(state: "ScreenState", fit: int) -> tuple[list[LaneState], list[Text]]:
    """The lanes that fit, around the one that asks or else the chosen one, and a line about the others."""
    lanes = state.evaluation.lanes
    if len(lanes) <= fit:
        return lanes, []
    focus = state.request.lane if state.request else state.chosen or 0
    first = min(focus // fit * fit, len(lanes) - fit)
    about = f"lanes {first} to {first + fit - 1} of {len(lanes)}; choose another one with its number"
    return lanes[first : first + fit], [Text(about, "dim")]


def _side_by_side(parts: tuple[Text | None, ...], width: int) -> Text:
    line = Text()
    for place, part in enumerate(parts):
        part = (part or Text()).copy()
        part.truncate(width, overflow="ellipsis", pad=True)
        line = line.append(GAP, "dim").append_text(part) if place else line.append_text(part)
    return line


def _panel(lane: LaneState, state: "ScreenState", width: int, height: int) -> list[Text]:
    """The lane in exactly `height` lines: its head, the environment, and at the end what its operators wrote."""
    head = [_name(lane, state), *_episode(lane)]
    if lane.reason:
        head += [Text(line, "red") for line in textwrap.wrap(printable(lane.reason), width)[:3]]
    said = _said(lane, width)[: max(0, height - len(head)) // 2]
    room = max(0, height - len(head) - len(said))
    view = _view(lane.view, width)[-room:] if room else []  # a world's map comes after the words about it
    lines = [*head, *view, *said][:height]
    return lines + [Text()] * (height - len(lines))


def _name(lane: LaneState, state: "ScreenState") -> Text:
    style = "bold reverse" if state.chosen == lane.index else "bold"
    return Text.assemble(
        (f"{lane.index} {printable(lane.name)}", style), "  ", (lane.state, STYLE.get(lane.state, "dim"))
    )


def _episode(lane: LaneState) -> list[Text]:
    """The seed and the step, the last action with its reward, and the return; of each agent if there are several."""
    seed = f"seed {'-' if lane.seed is None else lane.seed}  step {lane.step_index + 1}"
    if not lane.agents:
        last = f"{_action(lane)}  reward {number(lane.reward)}"
        return [Text(seed), Text(last), Text(f"return {number(lane.episode_return)}  {_done(lane)}")]
    agents = [
        f"{printable(one.agent_id)} ({printable(one.operator)}) {_action(one)}  {_reward(one)}"
        for one in lane.agents.values()
    ]
    return [Text(f"{seed}  {_done(lane)}"), *map(Text, agents)]


def _done(lane: LaneState) -> str:
    total = f"/{lane.episodes_total}" if lane.episodes_total else ""
    failed = f", {lane.failures} failed" if lane.failures else ""
    return f"done {lane.episodes_done}{total}{failed}"


def _action(last: "LaneState | AgentState") -> str:
    return printable(last.action_name or ("-" if last.action is None else str(last.action)))


def _reward(last: AgentState) -> str:
    return f"reward {number(last.reward)}  return {number(last.episode_return)}"


def _said(lane: LaneState, width: int) -> list[Text]:
    texts = [one.text for one in lane.agents.values()] if lane.agents else [lane.text]
    wrapped = [line for text in texts if text for line in textwrap.wrap(printable(text), width)]
    return [Text(line, "italic cyan") for line in wrapped]


def _view(text: str, width: int) -> list[Text]:
    """The environment as text. Its colours stay: Gymnasium's text worlds mark the player with them."""
    lines = [_safe(line) for line in text.strip("\n").split("\n")] if text.strip() else []
    return [Text.from_ansi(part) for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    """Sentences are wrapped; a row of a map that is too wide is cut, because wrapping would tear it."""
    is_sentence = SENTENCE.search(line) and not COLOUR.search(line)
    return textwrap.wrap(line, width) if is_sentence and len(line) > width else [line]


def _safe(line: str) -> str:
    return "".join(part if COLOUR.fullmatch(part) else printable(part) for part in COLOUR.split(line))


# ---- below the lanes


def _bottom(state: "ScreenState", size: ConsoleDimensions) -> list[Text]:
    """What a person is asked, a note, and the keys."""
    lines = [Text("─" * size.width, "dim")]
    if state.request:
        lines += _prompt(state, state.request, size.width)[: max(1, size.height // 3)]
    if state.note:
        lines += [Text(line, "yellow") for line in textwrap.wrap(printable(state.note), size.width)[:2]]
    return [*lines, _footer(state, size.width)]


def _prompt(state: "ScreenState", request: "ActionRequest", width: int) -> list[Text]:
    left = request.time_left_s(time.time())
    who = printable(request.operator or request.agent_id)
    is_one_of_several = bool(state.evaluation.lanes[request.lane].operators)
    agent = f" as {printable(request.agent_id)}" if is_one_of_several else ""
    title = Text(f"{who}{agent}, lane {request.lane}: choose an action", "bold yellow")
    if left is not None:
        title.append(f"  {left:.0f} s left", "red" if left < 6 else "yellow")
    if not request.choices:
        return [title, Text("Press : and type the value, as in: act [0.5, -1.0]")]
    return [title, *map(Text, _packed([printable(entry) for entry in legend(state.actions)], width))]


def _packed(words: list[str], width: int) -> list[str]:
    """The words in as few lines as possible; no word is split."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 3 + len(word) <= width:
            lines[-1] += f"   {word}"
        else:
            lines.append(word)
    return lines


def _footer(state: "ScreenState", width: int) -> Text:
    if state.typed is not None:
        return Text(f":{state.typed}█")
    if state.is_help:
        return Text("Press any key to go back.", "dim")
    if state.is_asked:
        if state.is_manual:
            return Text("Leave it running (l), finish and show the results (f), or stay (Esc)?", "bold yellow")
        return Text("Detach, the run continues (d), cancel it (c), or stay (Esc)?", "bold yellow")
    keys = list(MANUAL_KEYS if state.is_manual else SCRIPT_KEYS)
    if state.request:
        keys = [": type", *(["? help"] if "?" not in state.actions else []), "Esc quit"]  # others may be actions
    while len(keys) > 2 and len("  ".join(keys)) > width:
        del keys[-3]  # keep the way to the help and the way out
    return Text("  ".join(keys), "dim")


def _help(width: int) -> list[Text]:
    keys = [Text.assemble((f"  {key:<12}", "bold"), text) for key, text in HELP.items()]
    typed = [Text.assemble((f"  {key:<28}", "bold"), text) for key, text in COMMANDS.items()]
    asked = Text("While a lane asks you for an action, the keys of the actions come first.")
    return [
        Text("Keys"),
        *keys,
        asked,
        Text(),
        Text("Commands"),
        *typed,
    ]
