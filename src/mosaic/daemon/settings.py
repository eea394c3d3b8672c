"""What an explicit start decided, kept in `daemon.json`: a daemon started by a tailer inherits nothing of the run."""

import os
from dataclasses import asdict, dataclass, fields, replace

from mosaic.model.durable import read_json, write_json
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot

DEFAULT_TCP = "127.0.0.1:50055"


@dataclass(frozen=True)
class Settings:
    fake_gpus: int | None = None  # None: ask NVML
    tcp: str = ""  # "": Unix socket only, until a run says use_grpc
    max_runs: int = 32
    stopped_on_purpose: bool = False

    @classmethod
    def load(cls, root: StateRoot) -> "Settings":
        stored = read_json(root.settings) or {}
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in stored.items() if key in known})

    def save(self, root: StateRoot) -> None:
        write_json(root.settings, {"version": 1, **asdict(self)})


def settings_at_start(root: StateRoot, tcp: str, gpus: str, max_runs: int | None, kept: bool) -> Settings:
    """The settings of this start: as kept, or with what the command line and MOSAIC_GPUS ask for."""
    settings = replace(Settings.load(root), stopped_on_purpose=False)
    if not kept:
        gpus = gpus or os.environ.get("MOSAIC_GPUS", "")
        settings = replace(
            settings,
            tcp=tcp or settings.tcp,
            fake_gpus=_gpu_count(gpus) if gpus else settings.fake_gpus,
            max_runs=max_runs or settings.max_runs,
        )
    # Also what was kept: the file may have been edited, and nobody outside this machine gets in by that.
    settings = replace(settings, tcp=loopback(settings.tcp) if settings.tcp else "")
    settings.save(root)
    return settings


def loopback(address: str) -> str:
    """`address` as HOST:PORT on this machine; anything else is refused."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost", "[::1]"):
        raise BadConfig(
            "--tcp", f"'{address}' is not a loopback address. From another machine use: mosaic --host user@box"
        )
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise BadConfig("--tcp", f"'{address}' has no port between 0 and 65535, as in {DEFAULT_TCP}")
    return address


def _gpu_count(text: str) -> int | None:
    if text == "auto":
        return None
    if not (text.isascii() and text.isdigit()) or int(text) > 64:
        raise BadConfig("MOSAIC_GPUS", f"'{text}' is neither 'auto' nor a number of pretended GPUs up to 64")
    return int(text)
