"""Settings of an explicit start, kept in `daemon.json`: a daemon that a tailer starts inherits nothing from the run."""

import logging
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from mosaic.engines.cluster import LOCAL, split_place
from mosaic.model.durable import read_json, write_json
from mosaic.model.errors import BadConfig, BadRoot
from mosaic.model.machine import Machine, parse_cpus, parse_memory
from mosaic.model.rundir import StateRoot

log = logging.getLogger(__name__)
DEFAULT_TCP = "127.0.0.1:50055"
AUTO = "auto"  # use what the machine has
_VERSION = 2
_OLD_MAX_RUNS = 32  # version 1 wrote this default into the file
LARGEST_FILE = 64 << 10
MAX_FAKE_GPUS = 64

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    fake_gpus: int | None = None  # None: use NVML
    tcp: str = ""  # "": only the Unix socket, until a run sets use_grpc
    tcp_is_automatic: bool = False  # the daemon chose the address itself, so it may choose another one
    cpus: float | None = None  # that all runs together may request; None: what this machine has
    memory_mb: int | None = None  # the same
    max_runs: int | None = None  # None: see Machine.max_runs
    stopped_on_purpose: bool = False
    nodes: str = ""  # where tailers on other machines connect; "": not until a run needs it
    on: str = ""  # where runs go that do not say it; "": this machine

    @classmethod
    def load(cls, root: StateRoot) -> "Settings":
        stored = _stored(root)
        if stored.get("version") == 1 and stored.get("max_runs") == _OLD_MAX_RUNS:
            del stored["max_runs"]
        known = {field.name for field in fields(cls)}
        damaged = {key for key in known & stored.keys() if not _is_valid(key, stored[key])}
        if damaged:
            log.warning("%s: %s is not valid; the default is used.", root.settings, ", ".join(sorted(damaged)))
        return cls(**{key: value for key, value in stored.items() if key in known - damaged})

    def save(self, root: StateRoot) -> None:
        try:
            write_json(root.settings, {"version": _VERSION, **asdict(self)})
        except IsADirectoryError:
            raise BadRoot(f"{root.settings} is a folder. Remove it.") from None

    def machine(self, found: Machine) -> Machine:
        """What runs may request: the resources of this machine, unless the user set others."""
        return Machine(
            found.cpus if self.cpus is None else self.cpus,
            found.memory_mb if self.memory_mb is None else self.memory_mb,
        )


def _stored(root: StateRoot) -> dict[str, Any]:
    found = read_json(root.settings, LARGEST_FILE)
    if found is None and os.path.lexists(root.settings):
        log.warning("%s is damaged: all settings have their defaults.", root.settings)
    return found or {}


def _is_valid(name: str, value: Any) -> bool:
    if name in ("tcp", "nodes", "on"):
        return isinstance(value, str)
    if name in ("tcp_is_automatic", "stopped_on_purpose"):
        return isinstance(value, bool)
    allowed = (int, float) if name == "cpus" else (int,)
    if value is None or isinstance(value, bool) or not isinstance(value, allowed):
        return value is None
    return 0 <= value <= MAX_FAKE_GPUS if name == "fake_gpus" else 0 < value < math.inf


@dataclass(frozen=True)
class Asked:
    """The options on the command line of a start; an empty string keeps the stored setting."""

    tcp: str = ""
    gpus: str = ""
    cpus: str = ""
    memory: str = ""
    max_runs: str = ""
    nodes: str = ""
    launcher: str = ""


def settings_at_start(root: StateRoot, asked: Asked | None) -> Settings:
    """The stored settings with the changes in `asked` and MOSAIC_GPUS; None changes nothing."""
    settings = replace(Settings.load(root), stopped_on_purpose=False)
    if asked:
        settings = replace(settings, **_changes(asked))
    # Also checked for the stored address: an edited file must not open the daemon to other machines.
    settings = replace(settings, tcp=loopback(settings.tcp) if settings.tcp else "")
    try:
        settings.save(root)
    except OSError as error:
        # A full disk must not prevent a start; this daemon has the settings all the same.
        log.warning("%s cannot be written, so the next daemon starts with the old settings: %s", root.settings, error)
    return settings


def _changes(asked: Asked) -> dict[str, Any]:
    options: dict[str, tuple[str, Callable[[str], Any]]] = {
        "tcp": (asked.tcp, str),
        "fake_gpus": (asked.gpus or os.environ.get("MOSAIC_GPUS", ""), _gpu_count),
        "cpus": (asked.cpus, lambda text: _amount("--cpus", text, parse_cpus)),
        "memory_mb": (asked.memory, lambda text: _amount("--memory", text, parse_memory)),
        "nodes": (asked.nodes, host_and_port),
        "on": (asked.launcher, _place),
        "max_runs": (asked.max_runs, lambda text: _amount("--max-runs", text, _run_count)),
    }
    changes = {name: None if text == AUTO else read(text) for name, (text, read) in options.items() if text}
    return {**changes, "tcp_is_automatic": False} if asked.tcp else changes


def _amount(option: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        amount = parse(text)
    except ValueError as error:
        raise BadConfig(option, f"{error}, or 'auto'.") from None
    if not amount:
        raise BadConfig(option, "must be more than 0; with 0 no run could start.")
    return amount


def _run_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"'{text}' is not a valid number of runs, such as 8")
    return int(text)


def loopback(address: str) -> str:
    """`address`, if it is HOST:PORT on this machine; anything else is refused."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost", "[::1]"):
        raise BadConfig(
            "--tcp", f"'{address}' is not a loopback address. From another machine use: mosaic --host user@box"
        )
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise BadConfig("--tcp", f"'{address}' has no valid port (0 to 65535), as in {DEFAULT_TCP}")
    return address


def host_and_port(address: str) -> str:
    """`address`, if it is HOST:PORT; port 0 means a free one, which is then kept."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise BadConfig("--nodes", f"'{address}' is not a valid address, such as 10.0.0.5:0.")
    return address


def _place(text: str) -> str:
    return "" if text == LOCAL else ":".join(filter(None, split_place(text)))


def _gpu_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_FAKE_GPUS:
        raise BadConfig(
            "MOSAIC_GPUS", f"'{text}' is neither 'auto' nor a number of fake GPUs from 0 to {MAX_FAKE_GPUS}"
        )
    return int(text)
