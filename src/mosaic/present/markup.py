"""HTML that cannot be broken by what it shows: every text is escaped unless this module made it.

The report of an evaluation has the same functions, in its worker, which cannot import the platform.
"""

import html
from collections.abc import Sequence
from typing import Any

VOID = frozenset({"meta", "circle", "line", "rect", "path", "polyline", "polygon"})


class Html(str):
    """Text that is markup already. Only functions of this module make one from other text."""


def text(value: object) -> Html:
    """Escaped, without the control characters that HTML does not allow."""
    plain = str(value).encode("utf-8", "replace").decode()
    return Html(html.escape("".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in plain)))


def element(kind: str, /, *children: object, **attributes: Any) -> Html:
    """`element("td", "a < b", class_="odd")`. An attribute that is None is left out."""
    opening = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if kind in VOID and not children:
        return Html(f"<{kind}{opening}>" if kind == "meta" else f"<{kind}{opening}/>")
    return Html(f"<{kind}{opening}>{join(*children)}</{kind}>")


def join(*parts: object) -> Html:
    """Markup and text one after the other; None is nothing."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts if part is not None))


def table(headings: Sequence[object], rows: Sequence[Sequence[object]], kind: str | None = None) -> Html:
    """The first column is a heading. `kind`: a class of the page's style."""
    head = element("tr", *(element("th", cell, scope="col") for cell in headings))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    whole = element("table", element("thead", head), element("tbody", *body), class_=kind)
    return element("div", whole, class_="scroll")


def _attribute(key: str, value: Any) -> str:
    name = key.rstrip("_") if key == "viewBox" else key.rstrip("_").replace("_", "-")
    return f' {name}="{text(value)}"'
