"""The settings of a run, as `mosaic show` prints them: those from its config, then the defaults in one paragraph."""

import shutil
import textwrap
from typing import TYPE_CHECKING

from mosaic.cli.terminal_text import paint
from mosaic.present.settings_rows import settings_rows

if TYPE_CHECKING:
    from mosaic.client import Run

LONGEST_VALUE = 60
WIDEST = 120


def settings_section(run: "Run") -> str:
    """The settings as text; empty for a run of an older version, which recorded none."""
    rows = settings_rows(run)
    given = [row for row in rows if row.is_given]
    width = max((len(row.key) for row in given), default=0)
    lines = [f"{row.key:<{width}}  {_clip(row.value)}" for row in given]
    defaults = sorted(f"{row.key}={_clip(row.value)}" for row in rows if not row.is_given)
    if defaults:
        columns = min(shutil.get_terminal_size().columns, WIDEST)
        lines += [paint(line, "dim") for line in _wrapped(f"defaults: {'  '.join(defaults)}", columns)]
    return "\n".join([paint("settings", "bold"), *lines]) if lines else ""


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, max(columns, 40), break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
