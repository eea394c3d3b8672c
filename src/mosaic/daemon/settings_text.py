"""One setting of a run, found in the JSON text of all of them: decoding 40 settings of 10,000 runs takes too long."""

import json
from typing import Any

import msgspec

from mosaic.registry.row import read_object

_DECODER = json.JSONDecoder()  # reads NaN and Infinity, which settings may contain


class SettingFinder:
    """Finds the settings that a name means: the one with this dotted key, else those whose last parts are the name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._written = json.dumps(name)[1:-1]
        self._mark = f'{self._written}": '  # as the registry writes it; inside a string its quotation mark is escaped

    def find(self, text: object) -> dict[str, Any]:
        """The settings, by their keys; several only if the name is ambiguous."""
        if not isinstance(text, str) or self._mark not in text:
            return {}
        # A value that is an object has keys of its own, and an escaped key is not what it reads like.
        is_flat = text.find("{", 1) < 0 and "\\" not in text
        found = self._scan(text) if is_flat else self._decode(text)
        return {self.name: found[self.name]} if self.name in found else found

    def _scan(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        at = text.find(self._mark)
        while at >= 0:
            key = text[text.rfind('"', 0, at) + 1 : at + len(self._written)]
            after = at + len(self._mark)
            if self._is_meant(key):
                try:
                    found[key] = _DECODER.raw_decode(text, after)[0]
                except (ValueError, RecursionError):
                    return {}  # damaged
            at = text.find(self._mark, after)
        return found

    def _decode(self, text: str) -> dict[str, Any]:
        try:
            settings = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            settings = read_object(text)
        return {key: settings[key] for key in settings if self._is_meant(key)} if isinstance(settings, dict) else {}

    def _is_meant(self, key: str) -> bool:
        return key == self.name or key.endswith(f".{self.name}")
