"""The x-mosaic-* keywords: one list, in the code and in the documentation."""

import ast
import re
from pathlib import Path

from mosaic_sdk import keywords
from mosaic_sdk.keywords import KEYWORDS

REPO = Path(__file__).parents[3]
GUIDE = REPO / "docs" / "howto" / "new-worker.md"
ONE = re.compile(r"x-mosaic-[a-z-]+")


def test_every_keyword_has_a_meaning():
    names = {value for name, value in vars(keywords).items() if name.isupper() and ONE.fullmatch(str(value))}

    assert names - {keywords.OWNER} == set(KEYWORDS)


def test_the_guide_lists_every_keyword_with_its_meaning():
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `x-mosaic-")]

    assert rows == [f"| `{name}` | {word.where} | {word.meaning} |" for name, word in KEYWORDS.items()]


def test_the_platform_and_the_sdk_spell_no_keyword_themselves():
    files = [*(REPO / "src" / "mosaic").rglob("*.py"), *(REPO / "sdk" / "src").rglob("*.py")]

    spelled = [
        f"{path.relative_to(REPO)}: {node.value}"
        for path in files
        if path.name != "keywords.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ONE.fullmatch(node.value)
    ]

    assert spelled == []
