"""A form made from a worker's schema: what was typed, what it means, and what is wrong with it.

It knows no toolkit and no worker. Only what differs from a default is submitted, as a person would type it after
`mosaic run`; everything else is the worker's own default.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mosaic.catalog.common import with_common
from mosaic.catalog.request import nest
from mosaic.catalog.schema import PLACES, Schema, for_config
from mosaic.catalog.secrets import MASK, redact, redact_arguments
from mosaic.model.errors import BadConfig
from mosaic.present.form_check import OTHER, problems_of
from mosaic.present.form_fields import Field, fields_of
from mosaic.present.form_roles import ALGORITHM, roles_of
from mosaic.present.free_settings import line_of, parse_lines

_NONSENSE = (TypeError, ValueError, AttributeError, KeyError, RecursionError, re.error)  # what an invalid schema raises


class Form:
    """The settings of one worker.

    1. What a person has typed is kept, also for fields that another algorithm does not have.
    2. A schema that cannot be read is a form without fields; `note` says why, and `other` takes key=value lines.
    """

    def __init__(self, schema: Schema) -> None:
        self.note = ""  # why there are no fields
        self.other = ""  # lines of key=value, for settings without a field
        self._texts: dict[str, str] = {}  # of fields that differ from their default
        self._own = schema
        self._schema: Schema = {}
        self.fields: tuple[Field, ...] = ()
        self.roles: dict[str, Field] = {}
        try:
            self._schema = with_common(schema)
            self._refresh()
        except _NONSENSE as error:
            self._schema, self.fields, self.roles = {}, (), {}
            self.note = f"The worker's schema cannot be used ({error}). Its settings are not checked."

    @property
    def schema(self) -> Schema:
        """As the worker publishes it."""
        return self._own

    @property
    def is_open(self) -> bool:
        """Whether the worker takes settings that its schema does not have."""
        return not self._schema or self._schema.get("additionalProperties") is not False or bool(self.other)

    def field(self, key: str) -> Field | None:
        return next((field for field in self.fields if field.key == key), None)

    # Values

    def text(self, key: str) -> str:
        field = self.field(key)
        return self._texts.get(key, field.default if field else "")

    def is_changed(self, key: str) -> bool:
        return key in self._texts

    def set(self, key: str, text: str) -> bool:
        """Whether the fields have changed because of it: another algorithm, for example, has other settings."""
        field = self.field(key)
        text = text.strip()
        if text in ("", field.default if field else ""):
            self._texts.pop(key, None)
        else:
            self._texts[key] = text
        return self._refresh()

    def reset(self, keys: Iterable[str] = ()) -> bool:
        """Back to the defaults: these fields, or all of them."""
        for key in tuple(keys) or tuple(self._texts):
            self._texts.pop(key, None)
        return self._refresh()

    def settings(self) -> list[tuple[str, Any]]:
        """What is submitted: every value that differs from its default, under the key that a person would type."""
        given = [(field.key, field.value(self._texts[field.key])) for field in self.fields if field.key in self._texts]
        return [*given, *parse_lines(self.other)[0]]

    def problems(self) -> dict[str, str]:
        """What is wrong, by the key of the field, in the words of `mosaic run`."""
        problem = parse_lines(self.other)[1]
        found = {OTHER: problem} if problem else {}
        try:
            given = nest(self.settings())
        except BadConfig as error:
            return {**found, OTHER: str(error)}
        if not self._schema:
            return found
        try:
            return {**problems_of(given, self._schema, self.fields), **found}
        except _NONSENSE:
            return found  # the daemon does not check such a schema either, and says so

    # Searching and copying

    def matching(self, query: str) -> list[Field]:
        """The fields whose name, help or choices contain every word."""
        words = query.lower().split()
        return [field for field in self.fields if all(word in _searched(field) for word in words)]

    def typed(self) -> dict[str, Any]:
        """What to remember: `restore` brings it back. Secrets are not remembered."""
        shown = redact(self._texts)
        texts = {key: text for key, text in self._texts.items() if shown[key] == text}
        lines = [line for line in self.other.splitlines() if redact_arguments([line]) == [line]]
        return {"texts": texts, "other": "\n".join(lines)}

    def restore(self, typed: Mapping[str, Any]) -> None:
        """Take over what was remembered. It may be of another version of the worker, or damaged."""
        texts, other = typed.get("texts"), typed.get("other")
        self._texts = {str(key): str(text) for key, text in texts.items()} if isinstance(texts, Mapping) else {}
        self.other = other if isinstance(other, str) else ""
        self._refresh()
        self._refresh()  # what opens a field may itself be among the fields that the algorithm brings

    def fill(self, config: Mapping[str, Any]) -> list[str]:
        """Take over the settings of a run; returns those that cannot be taken over, because they are secret."""
        given = dict(_leaves(config))
        secret = [key for key, value in given.items() if value == MASK]
        algo = self.roles.get(ALGORITHM)
        self.reset()
        # The algorithm first: it decides which fields there are.
        for path in sorted(given, key=lambda path: not algo or path != algo.path):
            if path not in secret:
                self._take(path, given[path])
        return secret

    def _take(self, path: str, value: Any) -> None:
        field = next((field for field in self.fields if field.path == path), None)
        if field and value is not None:
            self.set(field.key, field.text(value))
        elif field is None:
            self.other = "\n".join(filter(None, (self.other, line_of(path, value))))

    def _refresh(self) -> bool:
        try:
            fields = fields_of(for_config(self._schema, self._applied())) if self._schema else ()
        except BadConfig:
            return False  # two lines give one setting: `problems` says so
        self.fields, before = fields, self.fields
        self.roles = roles_of(fields)
        return fields != before

    def _applied(self) -> dict[str, Any]:
        """The settings as the schema looks at them: by place, without regard to which algorithm has which."""
        known = {field.key: field for field in self.fields} or {f.key: f for f in fields_of(self._schema)}
        given = [(known[key].path, known[key].value(text)) for key, text in self._texts.items() if key in known]
        return nest(dict(given).items())


def _searched(field: Field) -> str:
    return " ".join((field.path, field.name.replace("_", " "), field.help, *field.choices)).lower()


def _leaves(config: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Each setting under its dotted place and name; objects that are one setting stay whole."""
    for place in PLACES:
        part: Any = config
        for name in place:
            part = part.get(name) if isinstance(part, Mapping) else None
        for name, value in part.items() if isinstance(part, Mapping) else ():
            is_place = (*place, name) in PLACES and isinstance(value, Mapping)
            if not is_place and name not in ("version", "run_id", "worker_id"):
                yield ".".join((*place, str(name))), value
