"""What an agent sees in MiniGrid and mosaic-multigrid, as words and as characters.

Both libraries encode a view in the same way: cells[column, row] = (object, colour, state), with the agent in the middle
of the last row, looking up.
"""

from collections.abc import Mapping
from typing import Any

from eval_worker.envs.families.family import article

OBJECTS = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
MORE_OBJECTS = ("object goal", "switch", "end zone")  # mosaic-multigrid's
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
DOORS = ("open", "closed", "locked")
DIRECTIONS = ("east", "south", "west", "north")
_ARROWS = ">v<^"
_CARRYING = 100  # mosaic-multigrid: an agent that carries a ball has its direction plus this as its state
_CHARACTERS = {
    **{"unseen": "?", "empty": ".", "wall": "#", "floor": "_", "door": "D", "key": "K", "ball": "B", "box": "X"},
    **{"goal": "G", "lava": "~", "agent": "A", "object goal": "O", "switch": "S", "end zone": "E"},
}


def describe_view(cells: Any, direction: int, carrying: str) -> str:
    """The view of an agent: its direction, what it carries, what it sees, and the view as a drawing."""
    lines = [
        f"You face {DIRECTIONS[direction % 4]} and carry {carrying or 'nothing'}.",
        f"Ahead of you: {_ahead(cells)}.",
        f"You see: {'; '.join(_sights(cells)) or 'nothing but floor and walls'}.",
        f"Your view (you are ^, looking up; {_legend(cells)}):",
    ]
    return "\n".join(lines + draw(cells))


def draw(cells: Any) -> list[str]:
    """The view as characters, one string per row."""
    width, height = cells.shape[0], cells.shape[1]
    rows = [[_CHARACTERS.get(_kind(cells[x, y]), "?") for x in range(width)] for y in range(height)]
    rows[height - 1][width // 2] = "^"
    return [" ".join(row) for row in rows]


def draw_scene(cells: Any, agents: Mapping[tuple[int, int], int]) -> str:
    """The whole grid; `agents`: the direction of each, by its place."""
    rows = [[_CHARACTERS.get(_kind(cells[x, y]), "?") for x in range(cells.shape[0])] for y in range(cells.shape[1])]
    for (x, y), direction in agents.items():
        rows[y][x] = _ARROWS[direction % 4]
    return "\n".join(" ".join(row) for row in rows)


def thing(cell: Any) -> str:
    """An object with its colour and state: "red ball", "locked blue door"."""
    kind, colour, state = _kind(cell), int(cell[1]), int(cell[2])
    if kind in ("wall", "lava"):
        return kind
    coloured = f"{COLOURS[colour]} {kind}" if colour < len(COLOURS) else kind
    if kind == "door" and state < len(DOORS):
        return f"{DOORS[state]} {coloured}"
    if kind == "agent":
        ball = " with a ball" if state >= _CARRYING else ""
        return f"{coloured} facing {DIRECTIONS[state % _CARRYING % 4]}{ball}"
    return coloured


def _kind(cell: Any) -> str:
    index = int(cell[0])
    known = OBJECTS + MORE_OBJECTS
    return known[index] if index < len(known) else "unseen"


def _ahead(cells: Any) -> str:
    width, height = cells.shape[0], cells.shape[1]
    cell = cells[width // 2, height - 2]
    kind = _kind(cell)
    if kind in ("empty", "floor"):
        return "free floor"
    return "nothing visible" if kind == "unseen" else article(thing(cell)) if kind != "lava" else "lava"


def _sights(cells: Any) -> list[str]:
    """Everything but floor and walls, the nearest first."""
    width, height = cells.shape[0], cells.shape[1]
    found = []
    for x in range(width):
        for y in range(height):
            is_self = (x, y) == (width // 2, height - 1)
            if is_self or _kind(cells[x, y]) in ("unseen", "empty", "wall", "floor"):
                continue
            ahead, aside = height - 1 - y, x - width // 2
            found.append((ahead + abs(aside), f"{article(thing(cells[x, y]))} {_place(ahead, aside)}"))
    return [words for _, words in sorted(found)]


def _place(ahead: int, aside: int) -> str:
    side = f"{abs(aside)} to the {'right' if aside > 0 else 'left'}" if aside else ""
    front = f"{ahead} ahead" if ahead else ""
    return " and ".join(part for part in (front, side) if part)


def _legend(cells: Any) -> str:
    width, height = cells.shape[0], cells.shape[1]
    seen = {_kind(cells[x, y]) for x in range(width) for y in range(height)}
    return ", ".join(f"{mark} {kind}" for kind, mark in _CHARACTERS.items() if kind in seen)
