"""The client that a verb talks through."""

import argparse
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mosaic.model.errors import MosaicError

# Verbs in a piece of advice, and those of them that --host cannot reach.
COMMAND = re.compile(r"\bmosaic (?!--host)([a-z]+(?: (?:start|stop|status))?)\b")
OVER_THERE = frozenset({"du", "gc", "doctor", "worker", "daemon start"})

if TYPE_CHECKING:
    from mosaic.client import TrainerClient


@contextmanager
def connected(args: argparse.Namespace, start: bool = True) -> "Iterator[TrainerClient]":
    """The daemon of this machine, started when needed, or the one that --host names."""
    from mosaic.client import TrainerClient

    if host := host_of(args):
        with tunnelled(host) as client:
            yield client
        return
    with TrainerClient.connect(start=start) as client:
        yield client


@contextmanager
def tunnelled(host: str) -> "Iterator[TrainerClient]":
    from mosaic.client import TrainerClient
    from mosaic.client.remote import Tunnel

    with Tunnel(host) as tunnel, TrainerClient.at(tunnel.open()) as client:
        yield client


def host_of(args: argparse.Namespace) -> str:
    return getattr(args, "host", "")


def refuse_host(args: argparse.Namespace, verb: str) -> None:
    """For verbs that look at files of this machine."""
    if host := host_of(args):
        raise MosaicError(f"`mosaic {verb}` looks at this machine's files. Run it there: {_over_there(host)} {verb}")


def seen_from_here(text: str, host: str) -> str:
    """Advice that the daemon of `host` gave, or that is about its runs, as commands that work on this machine."""
    if not host or f"ssh {host.partition(':')[0]}" in text:
        return text  # it says already where its command is to be run
    return COMMAND.sub(lambda match: f"{_way_to(match[1], host)} {match[1]}", text)


def _way_to(verb: str, host: str) -> str:
    return _over_there(host) if verb in OVER_THERE else f"mosaic --host {host}"


def _over_there(host: str) -> str:
    """`user@box:/path` names a state folder, which ssh does not understand."""
    box, _, home = host.partition(":")
    return f"ssh {box} MOSAIC_HOME={shlex.quote(home)} mosaic" if home else f"ssh {box} mosaic"
