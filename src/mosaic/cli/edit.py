"""`mosaic rename`, `mosaic note` and `mosaic tag`: what people write about runs after the fact."""

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.verb import RUN_HELP, BadUsage, add_json, add_verb
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

NOTE_EXAMPLES = """
mosaic note last "diverged after 200k steps: try a smaller learning rate"
mosaic note 01JCQ                                      print it
mosaic note 01JCQ ""                                   remove it
"""
TAG_EXAMPLES = """
mosaic tag last +baseline
mosaic tag 01JCQ 01JCR +paper -draft                   add one tag, remove another
mosaic tag last                                        print its tags
"""
OPTIONS = ("-v", "-h")  # with one dash; tags with these names come after --


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "rename", rename, "rename a run", "mosaic rename last baseline\nmosaic rename 01JCQ ppo-7")
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("name", metavar="NEW_NAME", help="its new name")
    add_json(parser)

    parser = add_verb(verbs, "note", note, "write a note about a run, or print it", NOTE_EXAMPLES)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("text", metavar="TEXT", nargs="*", help="the note, which replaces the old one; '' removes it")
    add_json(parser)

    parser = add_verb(
        verbs, "tag", tag, "add tags to runs, or remove them", TAG_EXAMPLES, "If one run cannot be edited, none is."
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN_HELP)
    add_json(parser)
    parser.usage = "mosaic tag RUN... [+TAG...] [-TAG...] [--json]"
    parser.split = split_tags  # type: ignore[attr-defined]


def split_tags(_: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the command itself, and those that add or remove a tag."""
    own = list(words[: words.index("--")] if "--" in words else words)
    tags = [word for word in own if _is_change(word)] + list(words[len(own) + 1 :])
    return [word for word in own if not _is_change(word)], tags


def _is_change(word: str) -> bool:
    return word.startswith("+") or (word[:1] == "-" and word[:2] != "--" and word not in OPTIONS)


def rename(args: argparse.Namespace) -> int:
    with connected(args) as client:
        old = client.get_run(args.run)
        edited = client.edit_run(old.run_id, name=args.name)
    return _report(args, edited, [f"Run {old.run_id} ({printable(old.name)}) is now called {printable(args.name)}."])


def note(args: argparse.Namespace) -> int:
    with connected(args) as client:
        if not args.text:
            return _print_note(args, client.get_run(args.run))
        edited = client.edit_run(args.run, note=" ".join(args.text))
    done = "has a new note" if edited[0].note else "has no note"
    return _report(args, edited, [f"Run {_named(edited[0])} {done}."])


def _print_note(args: argparse.Namespace, run: "Run") -> int:
    return _report(args, [run], ["\n".join(map(printable, run.note.split("\n")))] if run.note else [])


def tag(args: argparse.Namespace) -> int:
    changes: list[str] = args.program
    if odd := [word for word in changes if word[:1] not in ("+", "-") or len(word) < 2]:
        raise BadUsage(f"'{printable(odd[0])}' is not a change. Write +TAG to add a tag and -TAG to remove one")
    add = [word[1:] for word in changes if word.startswith("+")]
    remove = [word[1:] for word in changes if word.startswith("-")]
    with connected(args) as client:
        if changes:
            runs = client.edit_run(args.runs, add_tags=add, remove_tags=remove)
        else:
            runs = [client.get_run(run) for run in args.runs]
    return _report(args, runs, [f"{_named(run)}  {printable(' '.join(run.tags)) or '-'}" for run in runs])


def _named(run: "Run") -> str:
    return f"{run.run_id} ({printable(run.name)})"


def _report(args: argparse.Namespace, runs: "Sequence[Run]", lines: Sequence[str]) -> int:
    if args.json:
        plain = [run.to_dict() for run in runs]
        print(json.dumps(plain if args.action is tag else plain[0], indent=1))
        return 0
    for line in lines:
        print(line)
    return 0
