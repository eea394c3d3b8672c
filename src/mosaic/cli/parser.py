"""The command's parser: argparse, with one sentence and a suggestion in place of its usage dump.

Options are not abbreviated: `--env CartPole-v1` must not be taken for --env-of, nor `--a` for --all.
"""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from mosaic.model.nearest import did_you_mean, nearest

# What other tools call it.
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
    **dict.fromkeys(("workers", "envs"), "worker list"),
    **dict.fromkeys(("install", "add"), "worker install"),
    **dict.fromkeys(("status", "health"), "daemon status"),
    **dict.fromkeys(("clean", "prune", "cleanup"), "gc"),
    "check": "doctor",
}


class Parser(argparse.ArgumentParser):
    """Exit code 2 and one sentence for words that mean nothing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith(("?", ".")) else "."
        self.exit(2, f"{self.prog}: {message}{end} See: {self.prog} --help\n")

    def parse(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Words behind an option still belong to the list they continue: `run toy steps=5 --detach rate=2`."""
        found, extra = self.parse_known_args(words)
        parser: Parser = getattr(found, "parser", self)
        if extra and not any(word.startswith("-") for word in extra):
            extra = parser.take_words(found, extra)
        if extra:
            from mosaic.cli.unknown_arguments import explain

            parser.error(explain(parser, found, extra))
        return found

    def take_words(self, found: argparse.Namespace, words: list[str]) -> list[str]:
        """Put them into the verb's list of words, or where one may stand and none does; what is left is given back."""
        positionals = self._get_positional_actions()
        lists = [action for action in positionals if action.nargs in ("*", "+")]
        if lists:
            getattr(found, lists[-1].dest).extend(words)
            return []
        for action in positionals:
            if words and action.nargs == "?" and getattr(found, action.dest) == action.default:
                setattr(found, action.dest, words[0])
                words = words[1:]
        return words

    def options(self) -> list[str]:
        """Every option's long name."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if not isinstance(action, argparse._SubParsersAction):
            hint = did_you_mean(str(value), known, 1)
            raise argparse.ArgumentError(action, f"'{value}' is none of {', '.join(known)}. {hint}".rstrip())
        raise argparse.ArgumentError(None, f"there is no {_noun(self.prog)} '{value}'. {_meant(self, value, known)}")


def _noun(prog: str) -> str:
    return "action" if " " in prog else "verb"


def _meant(parser: argparse.ArgumentParser, value: str, known: list[str]) -> str:
    near = [SYNONYMS[value]] if " " not in parser.prog and value in SYNONYMS else nearest(value, known)
    quoted = [f"`{parser.prog} {name}`" for name in near]
    return f"Did you mean {' or '.join(quoted)}?" if near else f"There are: {', '.join(known)}."
