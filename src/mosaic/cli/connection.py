"""The client that a verb talks through."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mosaic.model.errors import MosaicError

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
        raise MosaicError(f"`mosaic {verb}` looks at this machine's files. Run it there: ssh {host} mosaic {verb}")
