"""The document of an evaluation script from the options of `mosaic eval`, alone or on top of a FILE."""

import argparse
import re
from pathlib import Path
from typing import Any

from mosaic.cli.settings import parse_settings
from mosaic.cli.verb import BadUsage, count
from mosaic.model.errors import BadConfig

# Options that only a script has, by their names in the parsed arguments.
SCRIPT_OPTIONS = ("env", "operator", "agent", "seeds", "max_steps", "pace", "set", "manual", "dry_run")
OWN_FIELDS = ("timeout_s", "time_limit_s", "owns_env", "checkpoint")  # of an operator; every other key is a setting
NAMED = re.compile(r"([A-Za-z0-9_.-]{1,40})=(.+)", re.DOTALL)


def add_script_options(parser: "argparse._ArgumentGroup") -> None:
    parser.add_argument("--env", default="", metavar="ENV", help="the environment, such as MiniGrid-Empty-8x8-v0")
    parser.add_argument(
        "--operator",
        action="append",
        default=[],
        metavar="[NAME=]KIND",
        help="who plays: random, passive, human, rl:RUN, rl:RUN:best, rl:RUN:PATH, llm:MODEL[@URL] or worker:NAME; "
        "repeat for more",
    )
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="AGENT=NAME",
        help="which operator plays this agent of a multi-agent environment; repeat for each",
    )
    parser.add_argument("--seeds", default="", metavar="SEEDS", help="the seeds of the episodes: 0-19 or 1,5,9")
    parser.add_argument("--max-steps", type=count, metavar="N", help="end an episode after N steps")
    parser.add_argument("--pace", type=_rate, metavar="RATE", help="steps per second (default: as fast as possible)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.key=value",
        help="a setting of the operator NAME, such as llm.temperature=0; repeat for more",
    )
    parser.add_argument("--manual", action="store_true", help="step the lanes by hand, side by side")
    parser.add_argument("--dry-run", action="store_true", help="print the whole script and the config, submit nothing")


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of steps per second")
    return rate


def document_of(args: argparse.Namespace) -> dict[str, Any]:
    """The script as a document: the file's, with what the options say instead."""
    _refuse_policy_options(args)
    document = _file(args.run) if args.run else {}
    operators = {**_operators_of(document), **_new_operators(args.operator, _operators_of(document))}
    if not operators:
        raise BadUsage("name at least one --operator, such as rl:last, random, human or llm:MODEL")
    if args.env:
        document["env"] = args.env
    document["operators"] = _with_settings(operators, args.set)
    if args.agent:
        document["lanes"] = [{"agents": _agents(args.agent)}]
    return {**document, **_given(args)}


def _given(args: argparse.Namespace) -> dict[str, Any]:
    video = 1 if args.video is True else args.video
    seeds = [int(seed) for seed in args.seeds.split(",")] if re.fullmatch(r"\d+(,\d+)+", args.seeds) else args.seeds
    asked = {"seeds": seeds or None, "episodes": args.episodes, "max_steps": args.max_steps, "pace": args.pace}
    return {name: value for name, value in {**asked, "video": video}.items() if value is not None}


def _refuse_policy_options(args: argparse.Namespace) -> None:
    if args.settings:
        raise BadUsage(f"'{args.settings[0]}': settings of an operator are given with --set NAME.key=value")
    for name, advice in (
        ("best", "write --operator rl:RUN:best"),
        ("checkpoint", "write --operator rl:RUN:PATH"),
        ("seed", "write --seeds, such as --seeds 7-16"),
    ):
        if getattr(args, name):
            raise BadUsage(f"--{name} is for the evaluation of a run; {advice}")


def _file(name: str) -> dict[str, Any]:
    from mosaic.client.script_file import read_script

    return read_script(Path(name).expanduser())


def _operators_of(document: dict[str, Any]) -> dict[str, Any]:
    operators = document.get("operators")
    return dict(operators) if isinstance(operators, dict) else {}


def _new_operators(words: list[str], taken: dict[str, Any]) -> dict[str, Any]:
    """`["rl:last", "me=human"]` → `{"rl": "rl:last", "me": "human"}`."""
    found: dict[str, Any] = {}
    for word in words:
        named = NAMED.fullmatch(word)
        name, kind = (named[1], named[2]) if named else (_default_name(word, {**taken, **found}), word)
        if name in found:
            raise BadUsage(f"--operator {word}: there are two operators with the name '{name}'")
        found[name] = kind
    return found


def _default_name(word: str, taken: dict[str, Any]) -> str:
    """The kind, or the worker's name; with a number if it is taken."""
    kind, _, rest = word.partition(":")
    name = rest if kind == "worker" and rest else kind
    numbered = (f"{name}-{number}" for number in range(2, 1000))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def _agents(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for agent, sign, name in pairs:
        if not (agent and sign and name):
            raise BadUsage(f"--agent {agent}{sign}{name}: write AGENT=NAME, such as player_0=random")
    return {agent: name for agent, _, name in pairs}


def _with_settings(operators: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """Add the values of --set to the operators; a shorthand becomes an object."""
    for name, values in parse_settings(words).items():
        if name not in operators:
            raise BadUsage(f"--set {name}.…: there is no operator '{name}'. Choose from: {', '.join(operators)}.")
        if not isinstance(values, dict):
            raise BadUsage(f"--set {name}={values}: write NAME.key=value, such as {name}.temperature=0")
        operators[name] = _with(_object(name, operators[name]), values)
    return operators


def _with(operator: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in values.items() if key in OWN_FIELDS}
    settings = {key: value for key, value in values.items() if key not in OWN_FIELDS}
    before = operator.get("settings")
    more = {"settings": {**(before if isinstance(before, dict) else {}), **settings}} if settings else {}
    return {**operator, **own, **more}


def _object(name: str, operator: Any) -> dict[str, Any]:
    """The long form of an operator."""
    from mosaic_sdk.config import ConfigError
    from mosaic_sdk.operators.specs import parse_operator

    if isinstance(operator, dict):
        return operator
    try:
        return parse_operator(operator, f"operators.{name}")
    except ConfigError as error:
        raise BadConfig("", str(error)) from None
