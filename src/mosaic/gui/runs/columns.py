"""Which columns of the table are shown, how wide and in which order: the user's choice, as far as there is room."""

from typing import TYPE_CHECKING

from mosaic.present.run_cells import COLUMNS, Column

if TYPE_CHECKING:
    from mosaic.gui.memory import Memory

NARROWEST_PX = 40
NAME_GROWS_PX = 120  # by so much at most if there is room; the rest goes to the note


class ColumnChoice:
    """Remembered under `runs/columns`. A damaged memory means the defaults."""

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory
        self.hidden = self._hidden()
        self.widths = self._widths()
        self.order = self._order()

    def _hidden(self) -> set[str]:
        default = ",".join(column.key for column in COLUMNS if column.is_hidden)
        return set(self._words("hidden", default)) - {"name"}

    def _widths(self) -> dict[str, int]:
        widths = {column.key: column.width for column in COLUMNS}
        for pair in self._words("widths"):
            key, _, width = pair.partition("=")
            if key in widths and width.isdecimal():
                widths[key] = min(2000, max(NARROWEST_PX, int(width)))
        return widths

    def _order(self) -> list[str]:
        known = [column.key for column in COLUMNS]
        remembered = [key for key in dict.fromkeys(self._words("order")) if key in known]
        return remembered + [key for key in known if key not in remembered]

    def _words(self, name: str, default: str = "") -> list[str]:
        return [word for word in str(self._memory.value(f"runs/columns/{name}", default)).split(",") if word]

    def set_hidden(self, key: str, is_hidden: bool) -> None:
        (self.hidden.add if is_hidden else self.hidden.discard)(key)
        self._memory.remember("runs/columns/hidden", ",".join(sorted(self.hidden)) or ",")

    def set_width(self, key: str, width: int) -> None:
        self.widths[key] = max(NARROWEST_PX, width)
        self._memory.remember("runs/columns/widths", ",".join(f"{key}={px}" for key, px in self.widths.items()))

    def set_order(self, order: list[str]) -> None:
        self.order = order
        self._memory.remember("runs/columns/order", ",".join(order))

    def reset(self) -> None:
        self.hidden = {column.key for column in COLUMNS if column.is_hidden}
        self.widths = {column.key: column.width for column in COLUMNS}
        self.order = [column.key for column in COLUMNS]
        for name in ("hidden", "widths", "order"):
            self._memory.remember(f"runs/columns/{name}", "" if name != "hidden" else ",".join(self.hidden))

    def fit(self, available: int) -> dict[str, int]:
        """The columns that fit, with their widths. Those with rank 0 always do; the highest ranks go first."""
        chosen = sorted((column for column in COLUMNS if column.key not in self.hidden), key=lambda column: column.rank)
        shown: dict[str, int] = {}
        for column in chosen:
            width = self.widths[column.key]
            if column.rank and sum(shown.values()) + width > available:
                continue
            shown[column.key] = width
        return _filled(shown, available, chosen)


def _filled(shown: dict[str, int], available: int, chosen: list[Column]) -> dict[str, int]:
    """Give name and note the room that is left, or let the four columns that always stay share what there is."""
    left = available - sum(shown.values())
    if left >= 0:
        for_name = min(left, NAME_GROWS_PX) if "note" in shown else left
        shown["name"] += for_name
        if "note" in shown:
            shown["note"] += left - for_name
    elif left < 0 and {column.key for column in chosen if column.rank} & set(shown) == set():
        total = sum(shown.values())
        shown = {key: max(NARROWEST_PX, width * available // total) for key, width in shown.items()}
    return shown
