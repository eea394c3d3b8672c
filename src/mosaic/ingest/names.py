"""The sets of metric names of a run. Loggers repeat the same names, so a row stores the number of a set."""

import json

from mosaic.model.run import LONGEST_NAME

MOST_SETS = 4096  # a worker that keeps inventing names must not fill the daemon's memory
MOST_BYTES = 8 << 20  # of all sets


class NameSets:
    """Numbers for tuples of names; `names` is the inverse of `ref`."""

    def __init__(self, stored: "list[tuple[int, str]]") -> None:
        self._names = {number: tuple(json.loads(text)) for number, text in stored}
        self._numbers = {names: number for number, names in self._names.items()}
        self._fresh: list[tuple[int, str]] = []
        self._bytes = sum(len(text) for _, text in stored)
        self._sizes: dict[int, int] = {}

    def ref(self, names: "tuple[str, ...]") -> "int | str":
        """The number of these names, or their text if there are too many sets; ValueError if a name is too long."""
        number = self._numbers.get(names)
        if number is not None:
            return number
        if too_long := next((name for name in names if len(name) > LONGEST_NAME), ""):
            raise ValueError(f"the name '{too_long[:40]}…' has more than {LONGEST_NAME} characters")
        text = json.dumps(names)
        if len(self._numbers) >= MOST_SETS or self._bytes + len(text) > MOST_BYTES:
            return text
        number = len(self._numbers) + 1
        self._numbers[names] = number
        self._names[number] = names
        self._bytes += len(text)
        self._fresh.append((number, text))
        return number

    def names(self, ref: "int | str") -> "tuple[str, ...]":
        return self._names[ref] if isinstance(ref, int) else tuple(json.loads(ref))

    def size(self, ref: "int | str") -> int:
        """About how many bytes the names take in a message."""
        if isinstance(ref, str):
            return len(ref)
        if ref not in self._sizes:
            self._sizes[ref] = sum(len(name) + 4 for name in self._names[ref])
        return self._sizes[ref]

    def take_fresh(self) -> "list[tuple[int, str]]":
        """The sets that are not yet in the table name_sets."""
        fresh, self._fresh = self._fresh, []
        return fresh
