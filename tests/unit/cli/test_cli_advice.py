"""Every `mosaic …` command in a message, a help text or a how-to page is valid."""

import argparse
import ast
import functools
import re
from pathlib import Path

import pytest

from mosaic.cli.main import build_parser

REPO = Path(__file__).parents[3]
SOURCES = sorted(
    path
    for folder in ("src/mosaic", "sdk/src", "workers")
    for path in (REPO / folder).rglob("*.py")
    if not {"tests", ".venv"} & set(path.parts) and "_pb2" not in path.name
)
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
# The command up to the end of a sentence, a quotation or a table cell.
COMMAND = re.compile(r"(?<![\w./@-])mosaic (?:--host \S+ )?([a-z]+\b[^\n`|;:,()…→·<>#]*)")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")


grammar = functools.cache(build_parser)


def texts_in(source):
    """The string literals of a module, with X in place of inserted values."""
    tree = ast.parse(source.read_text())
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def problem_of(words):
    """Why these words are not a valid command; empty if they are, or if they are prose."""
    parser = grammar()
    for word in words:
        parser = parser.actions.get(word, parser)
        action = next((a for a in parser._get_positional_actions() if isinstance(a, argparse._SubParsersAction)), None)
        if word.startswith("-") or action is None:
            continue
        if word == "X":
            return ""  # known only at run time
        if word.strip(".'\"") not in action.choices:
            return f"{parser.prog} has no '{word}'"
        parser = action.choices[word.strip(".'\"")]
    # Arguments after --, `python` and --module belong to a program.
    own = re.split(r" (?:--|python3?|--module) ", " ".join(words))[0]
    unknown = [name for name in OPTION.findall(own) if name not in parser._option_string_actions]
    return f"{parser.prog} has no option {unknown[0]}" if unknown else ""


def commands_in(text):
    for match in COMMAND.finditer(text):
        words = match[1].replace("[", " ").replace("]", " ").split()
        # `worker list|install` and `--state|--tag` name several at once.
        yield [word.split("/")[0] for word in words]


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(REPO)))
def test_commands_in_texts_exist(path):
    texts = texts_in(path) if path.suffix == ".py" else [path.read_text()]
    problems = [(words, problem_of(words)) for text in texts for words in commands_in(text)]

    assert [problem for problem in problems if problem[1]] == []


def test_a_command_that_does_not_exist_is_found():
    assert problem_of(["shwo", "last"]) == "mosaic has no 'shwo'"
    assert problem_of(["worker", "instal", "toy"]) == "mosaic worker has no 'instal'"
    assert problem_of(["gc", "--old-chekpoints"]) == "mosaic gc has no option --old-chekpoints"
    assert problem_of(["run", "toy", "steps=5", "--detach"]) == ""
    assert problem_of(["run", "--script", "x.py", "--", "--seed", "1"]) == ""
    assert problem_of(["run", "--gpus", "1", "python", "x.py", "--seed", "1"]) == ""
    assert problem_of(["run", "--gpu", "1", "python", "x.py"]) == "mosaic run has no option --gpu"
