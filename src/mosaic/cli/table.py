"""Plain text tables: columns as wide as their widest cell, headings dimmed on a terminal."""

from collections.abc import Sequence

from mosaic.cli.terminal_text import paint
from mosaic.present.text import ESCAPE


def render_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """`right`: the columns that are aligned to the right."""
    widths = [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]
    lines = [paint(_line(headings, widths, right), "dim")]
    lines += [_line(row, widths, right) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - _width(cell))
        padded.append(space + cell if column in right else cell + space)
    return "  ".join(padded).rstrip()


def _width(cell: str) -> int:
    return len(ESCAPE.sub("", cell))


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
