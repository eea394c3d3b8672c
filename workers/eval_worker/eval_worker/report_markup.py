"""HTML that cannot be broken by what it shows: every text is escaped unless this module made it."""

import html
from typing import Any

VOID = frozenset({"meta", "img", "br", "circle", "line", "rect", "path"})


class Html(str):
    """Text that is markup already. Only functions of this module make one from other text."""


def text(value: object) -> Html:
    """The value as text of a page: escaped, without the control characters that HTML does not allow."""
    plain = str(value).encode("utf-8", "replace").decode()
    return Html(html.escape("".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in plain)))


def element(kind: str, /, *children: object, **attributes: Any) -> Html:
    """`element("td", "a < b", class_="odd")`. An attribute that is None or False is left out; True has no value."""
    opening = "".join(_attribute(key, value) for key, value in attributes.items())
    if kind in VOID and not children:
        return Html(f"<{kind}{opening}>" if kind in ("meta", "img", "br") else f"<{kind}{opening}/>")
    return Html(f"<{kind}{opening}>{join(*children)}</{kind}>")


def join(*parts: object) -> Html:
    """Markup and text one after the other; None is nothing."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts if part is not None))


def raw(markup: str) -> Html:
    """Markup that is written in this package's source, such as the style sheet."""
    return Html(markup)


def table(headings: list[object], rows: list[list[object]], numbers: bool = True) -> Html:
    """A table whose first column is a heading. `numbers`: the other columns are aligned to the right."""
    head = element("tr", *(element("th", cell, scope="col") for cell in headings))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    whole = element("table", element("thead", head), element("tbody", *body), class_="numbers" if numbers else None)
    return element("div", whole, class_="scroll")


def _attribute(key: str, value: Any) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(value)}"'
