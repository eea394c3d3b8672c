"""Pieces of Markdown that the generated pages are made of."""

import re
from collections.abc import Sequence


def join(*parts: str) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def fence(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```" if text.strip() else ""


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = [head, tuple("---" for _ in head), *(tuple(one_line(text) for text in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Text from the code: < * _ and brackets outside of `code` are not markup."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(piece if piece.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", piece) for piece in pieces)
