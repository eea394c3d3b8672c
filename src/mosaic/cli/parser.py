"""The argument parser: argparse, with one sentence and a suggestion instead of a usage dump.

Options cannot be abbreviated: `--env CartPole-v1` must not be taken for --env-of, nor `--a` for --all.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mosaic.model.nearest import did_you_mean, nearest

# Names that other tools use for our verbs.
SYNONYMS = {
    **dict.fromkeys(("ls", "ps", "list", "jobs"), "runs"),
    **dict.fromkeys(("kill", "stop", "abort", "end"), "cancel"),
    **dict.fromkeys(("delete", "del", "remove"), "rm"),
    **dict.fromkeys(("train", "start", "launch"), "run"),
    **dict.fromkeys(("continue", "restart", "rerun"), "resume"),
    **dict.fromkeys(("evaluate", "test", "play"), "eval"),
    **dict.fromkeys(("info", "describe", "inspect"), "show"),
    **dict.fromkeys(("tail", "log", "output"), "logs"),
    **dict.fromkeys(("plot", "metrics"), "curve"),
    **dict.fromkeys(("top", "monitor"), "watch"),
    **dict.fromkeys(("window", "ui", "desktop"), "gui"),
    **dict.fromkeys(("workers",), "worker list"),
    **dict.fromkeys(("install", "add"), "worker install"),
    **dict.fromkeys(("status", "health"), "daemon status"),
    **dict.fromkeys(("clean", "prune", "cleanup"), "gc"),
    "envs": "env list",
    "check": "doctor",
}


class Parser(argparse.ArgumentParser):
    """A parser that rejects invalid arguments with one sentence and exit code 2."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})
        self.actions: dict[str, Parser] = {}  # parsers of a verb that takes an action or something else as first word
        # Of a verb that starts a program: its own words, and the program's command line, which is not parsed.
        self.split: Callable[[argparse.ArgumentParser, Sequence[str]], tuple[list[str], list[str]]] | None = None

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = list(args or ())
        if words and words[0] in self.actions:
            return self.actions[words[0]].parse_known_args(words[1:], namespace)
        if self.split:
            words, program = self.split(self, words)
            found, extra = super().parse_known_args(words, namespace)
            found.program = program
            return found, extra
        return super().parse_known_args(args, namespace)

    def add_parser(self, name: str, help: str = "", **options: Any) -> "Parser":
        """Add an action, as argparse's subparsers would; they exclude other words in the same place."""
        self.actions[name] = type(self)(prog=f"{self.prog} {name}", **options)
        return self.actions[name]

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith(("?", ".")) else "."
        self.exit(2, f"{self.prog}: {message}{end} See: {self.prog} --help\n")

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Like parse_args, but positional arguments may follow options: `run toy steps=5 --detach rate=2`."""
        found, extra = self.parse_known_args(arguments)
        parser: Parser = getattr(found, "parser", self)
        if extra and not any(argument.startswith("-") for argument in extra):
            extra = parser.take_positionals(found, extra)
        if extra:
            from mosaic.cli.unknown_arguments import explain

            parser.error(explain(parser, found, extra))
        return found

    def take_positionals(self, found: argparse.Namespace, arguments: list[str]) -> list[str]:
        """Add arguments to the verb's list of positionals, or fill optional ones that are missing. Returns the rest."""
        positionals = self._get_positional_actions()
        lists = [action for action in positionals if action.nargs in ("*", "+")]
        if lists:
            getattr(found, lists[-1].dest).extend(arguments)
            return []
        for action in positionals:
            if arguments and action.nargs == "?" and getattr(found, action.dest) == action.default:
                setattr(found, action.dest, arguments[0])
                arguments = arguments[1:]
        return arguments

    def options(self) -> list[str]:
        """The long names of all options."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if not isinstance(action, argparse._SubParsersAction):
            hint = did_you_mean(str(value), known, 1)
            raise argparse.ArgumentError(action, f"'{value}' is not one of {', '.join(known)}. {hint}".rstrip())
        raise argparse.ArgumentError(None, f"unknown {_noun(self.prog)} '{value}'. {_meant(self, value, known)}")


def _noun(prog: str) -> str:
    return "action" if " " in prog else "command"


def _meant(parser: argparse.ArgumentParser, value: str, known: list[str]) -> str:
    near = [SYNONYMS[value]] if " " not in parser.prog and value in SYNONYMS else nearest(value, known)
    quoted = [f"`{parser.prog} {name}`" for name in near]
    return f"Did you mean {' or '.join(quoted)}?" if near else f"Choose from: {', '.join(known)}."
