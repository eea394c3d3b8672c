"""NetHack's screen in words: what is in sight and where, the message, the map and the inventory."""

from typing import Any

from balrog_worker.games.game import View, compass

KEYS = ("glyphs", "blstats", "tty_chars", "tty_cursor", "inv_letters", "inv_strs", "screen_descriptions")
_NOT_LISTED = ("", "floor of a room", "dark part of a room", "stone", "wall", "solid rock", "unexplored area")
_MOST_PLACES, _MOST_LINES = 3, 30
MORE = b"--More--"


def message(observation: Any) -> str:
    """The top line of the screen, which continues in the second if it is long."""
    rows = [_text(row) for row in observation["tty_chars"][:2]]
    return " ".join(rows).strip() if len(rows[0]) > 70 else rows[0].strip()


def is_waiting(observation: Any) -> bool:
    """Whether the game waits until its message was read."""
    return MORE in bytes(observation["tty_chars"].reshape(-1))


def describe(observation: Any, messages: list[str]) -> View:
    said = " ".join(one.replace("--More--", "").strip() for one in messages if one.strip())
    cursor_row, cursor_column = (int(part) for part in observation["tty_cursor"])
    screen = "\n".join(_text(row) for row in observation["tty_chars"][1:])
    lasting = (
        f"Message: {said or 'none'}\nIn sight:\n{_in_sight(observation)}\n"
        f"Cursor: column {cursor_column}, row {cursor_row}\nMap:\n{screen}"
    )
    return View(lasting, f"Inventory:\n{_inventory(observation)}")


def _in_sight(observation: Any) -> str:
    """Each kind of thing with its nearest places, the nearest kind first."""
    x, y = (int(part) for part in observation["blstats"][:2])
    descriptions = observation["screen_descriptions"]
    found: dict[str, list[tuple[int, int, int]]] = {}
    rows, columns = descriptions[..., 0].nonzero()
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        name, east, south = _text(descriptions[row, column]), column - x, row - y
        if name not in _NOT_LISTED and (east or south):
            found.setdefault(name, []).append((max(abs(east), abs(south)), east, south))
    nearest = sorted((sorted(places)[:_MOST_PLACES], name) for name, places in found.items())
    lines = [
        f"- {name}: {'; '.join(compass(east, south) for _, east, south in places)}"
        for places, name in nearest[:_MOST_LINES]
    ]
    return "\n".join(lines) or "- nothing"


def _inventory(observation: Any) -> str:
    letters, names = observation["inv_letters"], observation["inv_strs"]
    lines = [f"{chr(letter)}: {_text(name)}" for letter, name in zip(letters, names, strict=True) if letter]
    return "\n".join(lines) or "nothing"


def _text(row: Any) -> str:
    return bytes(row).split(b"\0", 1)[0].decode("latin-1").rstrip()
