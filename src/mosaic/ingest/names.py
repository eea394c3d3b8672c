"""The sets of metric names of a run. Loggers repeat the same names, so a row stores the number of a set."""

import json

MOST_SETS = 4096  # a worker that keeps inventing names must not fill the daemon's memory


class NameSets:
    """Numbers for tuples of names; `names` is the inverse of `ref`."""

    def __init__(self, stored: "list[tuple[int, str]]") -> None:
        self._names = {number: tuple(json.loads(text)) for number, text in stored}
        self._numbers = {names: number for number, names in self._names.items()}
        self._fresh: list[tuple[int, str]] = []

    def ref(self, names: "tuple[str, ...]") -> "int | str":
        number = self._numbers.get(names)
        if number is not None:
            return number
        if len(self._numbers) >= MOST_SETS:
            return json.dumps(names)
        number = len(self._numbers) + 1
        self._numbers[names] = number
        self._names[number] = names
        self._fresh.append((number, json.dumps(names)))
        return number

    def names(self, ref: "int | str") -> "tuple[str, ...]":
        return self._names[ref] if isinstance(ref, int) else tuple(json.loads(ref))

    def take_fresh(self) -> "list[tuple[int, str]]":
        """The sets that are not yet in the table name_sets."""
        fresh, self._fresh = self._fresh, []
        return fresh
