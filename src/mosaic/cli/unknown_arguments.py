"""Explains arguments that a verb does not accept, and suggests what was meant."""

import argparse
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import host_of
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import nearest

if TYPE_CHECKING:
    from mosaic.cli.parser import Parser


def explain(parser: "Parser", args: argparse.Namespace, extra: list[str]) -> str:
    """One sentence about the first of the arguments that the parser did not accept."""
    at = next((index for index, argument in enumerate(extra) if argument.startswith("-")), None)
    if at is None:
        return f"unexpected argument '{extra[0]}'"
    option, _, value = extra[at].partition("=")
    if not value and at + 1 < len(extra) and not extra[at + 1].startswith("-"):
        value = extra[at + 1]
    unknown = f"{option} is not an option of `{parser.prog}`."
    if getattr(args, "script", ""):
        return f"{unknown} Put arguments of the script after --, as in: -- {option} …"
    worker: str = getattr(args, "worker", "")
    if worker and getattr(args, "settings", None) is not None:
        return f"{unknown} {_setting(parser, args, option, value)}"
    return f"{unknown} {_meant(nearest(option, parser.options(), 1))}".rstrip()


def _setting(parser: "Parser", args: argparse.Namespace, option: str, value: str) -> str:
    """A suggestion for users who write a worker's setting as an option, as many tools require."""
    key = option.lstrip("-").replace("-", "_")
    schema = _schema_of(args)
    if schema is None:
        return f"If it is a setting of the worker, write: {key}={value or '…'}"
    if key in schema:
        return f"It is a setting of {args.worker}. Write: {key}={value or _example(schema[key])}"
    options = {name.removeprefix("--"): name for name in parser.options()}
    near = nearest(key, [*schema, *options], 1)
    return (
        _meant([options.get(name, f"{name}={value or '…'}") for name in near])
        or f"It is not a setting of {args.worker} either."
    )


def _schema_of(args: argparse.Namespace) -> dict[str, Any] | None:
    """The worker's settings by their short names; None if they are not known on this machine."""
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.schema import parameters
    from mosaic.catalog.workers import Catalog
    from mosaic.model.rundir import StateRoot

    if host_of(args):
        return None
    root = StateRoot.from_environment()
    name, _, variant = args.worker.partition("@")
    try:
        schema = Answers(root.answers).of(Catalog(root).find(name, variant)).schema
    except MosaicError:
        return None
    known = {key: part for _, key, part in parameters(schema)}
    return {**known, **({"env": known["env_id"]} if "env_id" in known else {})} or None


def _example(part: Any) -> str:
    kind = part.get("type")
    return "true" if kind == "boolean" else "…"


def _meant(near: list[str]) -> str:
    return f"Did you mean {near[0]}?" if near else ""
