"""`mosaic __complete SHELL WORD…`: print completions of the last word, one `value<TAB>description` per line.

1. It never writes to stderr and always exits with 0, so that it cannot disturb the command line.
2. It starts no daemon, waits at most two seconds for one, and exits after LIMIT_S in any case.
"""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mosaic.cli.completion_candidates import CANDIDATES, Candidate
from mosaic.model.visible import visible_line

LIMIT_S = 5.0
FILES = ":files"
# Arguments that are the name of a file, by their name in the help.
FILE_NAMES = frozenset(
    {"FILE", "RUN|FILE", "FILE.png", "FILE.gif", "CONFIG.json", "PATH", "FOLDER", "NAME|PATH|REQUIREMENT", "uv.lock"}
)

_PROGRAM = argparse.Action([], "program", nargs="*", metavar="FILE")


def main(words: Sequence[str]) -> int:
    """`words`: the name of the shell, then the words of the line up to the cursor."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        shell, *line = words or [""]
        typed, cut = join_pieces(line) if shell == "bash" else (list(line), 0)
        for candidate in complete([_plain(word) for word in typed] or [""]):
            print(_format(candidate, cut), flush=True)
    except Exception:  # noqa: BLE001  # the edge of the process: a traceback would be printed into the command line
        return 0
    return 0


def complete(words: Sequence[str]) -> Iterator[Candidate]:
    """The completions of the last of these words, which may be empty."""
    from mosaic.cli.main import build_parser

    place = Place.after(build_parser(), words[:-1])
    seen: set[str] = set()
    for candidate in place.candidates(words[-1]):
        # A name with a line break would be two candidates, and one with an escape sequence would be obeyed.
        if candidate.value.isprintable() and candidate.fits(words[-1]) and candidate.value not in seen:
            seen.add(candidate.value)
            yield candidate
    if not seen and place.expects_file(words[-1]):
        yield Candidate(FILES)


@dataclass
class Place:
    """The position in the grammar that a line has reached."""

    parser: argparse.ArgumentParser
    pending: argparse.Action | None = None  # an option whose value comes next
    positionals: list[argparse.Action] = field(default_factory=list)  # the ones that may still be given
    given: dict[str, list[str]] = field(default_factory=dict)  # words by the `dest` of their argument
    is_raw: bool = False  # after --

    @classmethod
    def after(cls, parser: argparse.ArgumentParser, words: Sequence[str]) -> "Place":
        place = cls(parser, positionals=parser._get_positional_actions())
        for word in words:
            place.take(word)
        return place

    def take(self, word: str) -> None:
        if self.pending:
            self._note(self.pending, word)
            self.pending = None
        elif word == "--":
            self.is_raw = True
        elif word.startswith("-") and not self.is_raw:
            name, _, value = word.partition("=")
            option = self.parser._option_string_actions.get(name)
            if option:
                self._note(option, value)
                self.pending = option if option.nargs != 0 and not value else None
        else:
            self._take_positional(word)

    def _take_positional(self, word: str) -> None:
        if self._begins_program(word):
            # Its own command line follows: a file, and then words that only it knows.
            self.is_raw, self.positionals = True, [_PROGRAM]
            return
        if not self.positionals:
            return
        action = self.positionals[0]
        if inner := getattr(self.parser, "actions", {}).get(word):
            # An action in the place of the verb's own first word, as in `mosaic eval attach RUN`.
            self.parser, self.positionals = inner, inner._get_positional_actions()
            return
        self._note(action, word)
        if isinstance(action, argparse._SubParsersAction):
            self.parser = action.choices.get(word) or argparse.ArgumentParser(add_help=False)
            self.positionals = self.parser._get_positional_actions()
        elif action.nargs not in ("*", "+"):
            self.positionals = self.positionals[1:]

    def _begins_program(self, word: str) -> bool:
        from mosaic.catalog.programs import is_program

        is_first = "worker" not in self.given and "script" not in self.given
        return bool(getattr(self.parser, "split", None)) and is_first and is_program(word)

    def _note(self, action: argparse.Action, word: str) -> None:
        self.given.setdefault(action.dest, []).append(word)

    def candidates(self, word: str) -> Iterator[Candidate]:
        if word.startswith("-") and not self.pending and not self.is_raw:
            return self._options(word)
        action = self._expected()
        return self._values(action, word) if action else iter(())

    def expects_file(self, word: str) -> bool:
        """Whether the shell should complete file names."""
        action = self._expected()
        return not word.startswith("-") and action is not None and action.metavar in FILE_NAMES

    def _expected(self) -> argparse.Action | None:
        return self.pending or next(iter(self.positionals), None)

    def _options(self, word: str) -> Iterator[Candidate]:
        name, sign, value = word.partition("=")
        if sign:
            option = self.parser._option_string_actions.get(name)
            values = self._values(option, value) if option else iter(())
            return (Candidate(f"{name}={candidate.value}", candidate.note) for candidate in values)
        return (
            Candidate(option_string, _first_line(action.help))
            for action in self.parser._actions
            for option_string in action.option_strings
            if option_string.startswith("--") and (action.dest not in self.given or action.nargs is None)
        )

    def _values(self, action: argparse.Action, word: str) -> Iterator[Candidate]:
        if isinstance(action, argparse._SubParsersAction):
            return (Candidate(choice.dest, _first_line(choice.help)) for choice in action._choices_actions)
        if action.choices is not None:
            return (Candidate(str(choice)) for choice in action.choices)
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        source = CANDIDATES.get(metavar or action.dest.upper())
        return source(self.given, word) if source else iter(())


def join_pieces(words: Sequence[str]) -> tuple[list[str], int]:
    """Undo that bash splits words at = and :. Returns the words as typed, and how many characters of the last one bash
    keeps."""
    joined: list[str] = []
    for index, word in enumerate(words):
        is_glued = bool(joined) and (word in ("=", ":") or (index > 0 and words[index - 1] in ("=", ":")))
        if is_glued and (word != "" or index == len(words) - 1):
            joined[-1] += word
        else:
            joined.append(word)
    last = words[-1] if words else ""
    kept = len(joined[-1]) - (0 if last in ("=", ":") else len(last)) if joined else 0
    return joined, kept


def _plain(word: str) -> str:
    """The word without quotes and backslashes; the last quote may still be open."""
    for end in ("", "'", '"'):
        try:
            return " ".join(shlex.split(word + end))
        except ValueError:
            continue
    return word


def _format(candidate: Candidate, cut: int) -> str:
    value = candidate.value if candidate.value == FILES else candidate.value[cut:]
    return f"{value}\t{visible_line(candidate.note)}" if candidate.note else value


def _first_line(text: str | None) -> str:
    return "" if text in (None, argparse.SUPPRESS) else str(text).split("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
