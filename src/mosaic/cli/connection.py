"""The connection of a verb to the daemon, on this machine or on another one."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from mosaic import __version__
from mosaic.model.errors import MosaicError
from mosaic.model.registry_origin import RegistryOrigin
from mosaic.model.rundir import StateRoot
from mosaic.present.text import printable

# A command in a message, and the verbs that do not accept --host.
COMMAND = re.compile(r"\bmosaic (?!--host)([a-z]+(?: (?:start|stop|status))?)\b")
LOCAL_ONLY = frozenset({"du", "gc", "doctor", "worker", "registry", "model", "daemon start"})

if TYPE_CHECKING:
    from mosaic.client import TrainerClient


@contextmanager
def connected(args: argparse.Namespace, start: bool = True) -> "Iterator[TrainerClient]":
    """A client of this machine's daemon, which is started if needed, or of the one that --host names."""
    from mosaic.client import TrainerClient

    if host := host_of(args):
        with tunnelled(host) as client:
            report_mismatch(client, host)
            yield client
        return
    with TrainerClient.connect(start=start) as client:
        report_mismatch(client)
        yield client


@contextmanager
def tunnelled(host: str) -> "Iterator[TrainerClient]":
    from mosaic.client import TrainerClient
    from mosaic.client.remote import Tunnel

    with Tunnel(host) as tunnel, TrainerClient.at(tunnel.open()) as client:
        yield client


def report_mismatch(client: "TrainerClient", host: str = "") -> None:
    """Say on stderr, once, that the daemon has another version."""
    try:
        version = client.daemon_version or client.health().version
    except MosaicError:
        return  # the verb's own call will report what is wrong
    if version != __version__:
        _report(version, host)


@cache
def _report(version: str, host: str) -> None:
    text = (
        f"The daemon is version {version[:64]}, this command is {__version__}; they may be incompatible. Restart the "
        "daemon, runs continue meanwhile: mosaic daemon stop && mosaic daemon start"
    )
    print(f"mosaic: {printable(seen_from_here(text, host))}", file=sys.stderr)


def host_of(args: argparse.Namespace) -> str:
    return getattr(args, "host", "")


def refuse_host(args: argparse.Namespace, verb: str) -> None:
    """Refuse --host for a verb that works on files of this machine."""
    if host := host_of(args):
        from mosaic.client.endpoint import by_ssh

        raise MosaicError(f"`mosaic {verb}` does not accept --host. Run it there with: {by_ssh(host)} {verb}")


def seen_from_here(text: str, host: str) -> str:
    """A message about runs of `host`, its commands rewritten so that they work on this machine."""
    if not host or f"ssh {host.partition(':')[0]}" in text:
        return text  # its commands name the other machine already
    return COMMAND.sub(lambda match: f"{_command_for(match[1], host)} {match[1]}", text)


def _command_for(verb: str, host: str) -> str:
    from mosaic.client.endpoint import by_ssh

    return by_ssh(host) if verb in LOCAL_ONLY else f"mosaic --host {host}"


def tell_rebuild(args: argparse.Namespace) -> None:
    """Say on stderr that the registry of this machine was rebuilt, until `mosaic doctor --fix` confirms it."""
    if host_of(args) or os.environ.get("MOSAIC_ADDRESS"):
        return
    if told := RegistryOrigin.read(StateRoot.from_environment()).describe():
        print(f"{told} See: mosaic doctor", file=sys.stderr)
