"""`environment` of a config: the variables of a worker. Which names are refused is in catalog/variables.py."""

import re

from mosaic.catalog.variables import why_refused
from mosaic.model.errors import BadConfig
from mosaic.submit.section import Section

MAX_ARGUMENT_BYTES = 128 * 1024 - 1  # the kernel's limit for a string in argv or the environment
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_variables(section: Section) -> dict[str, str]:
    for name, value in section.values.items():
        if not _VARIABLE.fullmatch(name):
            raise section.bad(name, "is not a valid variable name: use letters, digits and _, and no digit first.")
        if why := why_refused(name):
            raise section.bad(name, why)
        if not isinstance(value, str):
            raise section.bad(name, f'must be a string; write it as "{value}".')
        check_for_kernel(section.of(name), value)
    return dict(section.values)


def check_for_kernel(field: str, text: str) -> None:
    if "\0" in text:
        raise BadConfig(field, "contains a NUL character, which cannot be passed to a process.")
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise BadConfig(field, "contains half of a surrogate pair, which cannot be passed to a process.") from None
    if length > MAX_ARGUMENT_BYTES:
        raise BadConfig(field, f"is longer than {MAX_ARGUMENT_BYTES:,} bytes. Put it into metadata.worker.config.")
