"""`mosaic run python FILE …` and `mosaic run --module PKG.MOD …`: programs that were not written for MOSAIC."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import refuse_host
from mosaic.cli.verb import BadUsage
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.catalog.interpreters import Interpreter, Wanted
    from mosaic.catalog.programs import Program

ONLY_FOR_PROGRAMS = "python", "env", "cwd", "var"  # options that a worker does not have


def add_program_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--module",
        default="",
        metavar="PKG.MOD",
        help="start this module, like python -m; everything after it is passed to it",
    )
    parser.add_argument(
        "--python", default="", metavar="PATH", help="the interpreter, or the environment, of your own program"
    )
    parser.add_argument(
        "--env", default="", metavar="ENV", help="run your own program in an environment of `mosaic env create`"
    )
    parser.add_argument(
        "--cwd", default="", metavar="FOLDER", help="run your own program in this folder (default: the run's folder)"
    )
    parser.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set a variable of the program's environment; without a value, to its value here; repeat for more",
    )
    parser.add_argument("--no-observe", action="store_true", help="do not collect what the program's libraries log")
    parser.set_defaults(program=[])


def split_program(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of `mosaic run`, and the command line of a program: both `python` and --module begin one."""
    from mosaic.catalog.programs import is_program

    index, takes_options = 0, True
    while index < len(words):
        word = words[index]
        name, sign, value = word.partition("=")
        if takes_options and word == "--":
            takes_options = False
        elif takes_options and name == "--script":
            break  # what follows are the arguments of the script
        elif takes_options and name == "--module":
            rest = [value, *words[index + 1 :]] if sign else list(words[index + 1 :])
            if rest[1:2] == ["--"]:
                del rest[1]
            return list(words[:index]), ["python", "-m", *rest]
        elif takes_options and word.startswith("-") and word != "-":
            option = parser._option_string_actions.get(name)
            index += option is not None and option.nargs != 0 and not sign
        elif is_program(word):
            return [each for each in words[:index] if each != "--"], list(words[index:])
        else:
            break
        index += 1
    return list(words), []


def program_part(args: argparse.Namespace) -> dict[str, Any]:
    """`metadata.worker` of the program; says which Python runs it."""
    from mosaic.catalog.programs import Program, Surroundings, find_script, program_section

    refuse_host(args, "run python")
    if args.set:
        raise BadUsage("--set needs --script; pass the settings of your program as its own arguments")
    try:
        program, caller = Program.of(args.program), Path.cwd()
    except MosaicError as error:
        raise BadUsage(str(error)) from None
    if program.script:
        find_script(program.script, caller)  # before the search for an interpreter
    interpreter = interpreter_for(args, program)
    section = program_section(
        program, interpreter, Surroundings(args.cwd, variables_of(args), False if args.no_observe else None), caller
    )
    if not args.json:
        _print_choice(interpreter, section)
    return section


def interpreter_for(args: argparse.Namespace, program: "Program") -> "Interpreter":
    from mosaic.catalog.interpreters import choose_interpreter

    wanted = wanted_of(args, program.python)
    return choose_interpreter(wanted, program.folder(Path.cwd()), os.environ, StateRoot.from_environment())


def wanted_of(args: argparse.Namespace, python: str = "") -> "Wanted":
    from mosaic.catalog.interpreters import Wanted

    named = {"--python": args.python or python, "--env-of": args.env_of, "--env": args.env}
    given = [f"{option} {value}" for option, value in named.items() if value]
    if args.python and python:
        given = [f"--python {args.python}", python]
    if len(given) > 1:
        raise BadUsage(f"{' and '.join(given)} both name a Python; give one of them")
    return Wanted(*named.values())


def variables_of(args: argparse.Namespace) -> dict[str, str]:
    """The variables of --var; a name alone means its value in the caller's environment."""
    variables = {}
    for text in args.var:
        name, sign, value = text.partition("=")
        if not sign and name not in os.environ:
            raise BadUsage(f"--var {name}: this variable is not set here; write: --var {name}=VALUE")
        variables[name] = value if sign else os.environ[name]
    return variables


def refuse_program_options(args: argparse.Namespace) -> None:
    """A worker has its own environment and folder."""
    for name in ONLY_FOR_PROGRAMS:
        value = getattr(args, name)
        if name == "env" and value:
            raise BadUsage(f"--env is for your own programs. If it is a setting of the worker, write: env={value}")
        if value:
            raise BadUsage(f"--{name} is for your own programs: mosaic run --{name} … python FILE")


def program_hint(args: argparse.Namespace) -> str:
    """What a user meant who wrote a file in the place of a worker, or misspelled `python`; empty: something else."""
    from mosaic.model.nearest import nearest

    first, rest = args.worker, args.settings
    if first.endswith(".py"):
        return f"mosaic run python {first}"
    if rest and rest[0].endswith(".py") and "=" not in rest[0] and nearest(first, ["python", "python3"], 1):
        return f"mosaic run python {rest[0]}"
    return ""


def _print_choice(interpreter: "Interpreter", section: dict[str, Any]) -> None:
    print(f"Python: {interpreter}", file=sys.stderr)
    if interpreter.note:
        print(interpreter.note, file=sys.stderr)
    if section.get("observe") is False and not interpreter.can_be_observed:
        print("This Python is older than 3.9, so what its libraries log is not collected.", file=sys.stderr)
