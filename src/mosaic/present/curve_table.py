"""Curves as tab-separated text, for a spreadsheet."""

from collections.abc import Sequence

from mosaic.present.curves import Series
from mosaic.present.text import printable


def as_tsv(series: Sequence[Series], axis: str) -> str:
    """A row per x; a column per curve, empty where it has no point."""
    columns = [dict(zip(each.x.tolist(), each.y.tolist(), strict=True)) for each in series]
    places = sorted({x for column in columns for x in column if x == x})
    head = "\t".join([axis, *(printable(each.label) for each in series)])
    rows = ("\t".join([_text(x), *(_text(column[x]) if x in column else "" for column in columns)]) for x in places)
    return "\n".join([head, *rows]) + "\n"


def _text(value: float) -> str:
    return str(int(value)) if value == round(value, 0) and abs(value) < 1e15 else repr(value)
