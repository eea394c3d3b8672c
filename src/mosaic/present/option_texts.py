"""What MOSAIC does with a run, as it is typed into a form: name, tags, GPUs, CPUs, memory, time limit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mosaic.catalog.request import RunOptions
from mosaic.model.machine import format_memory, parse_cpus, parse_memory
from mosaic.present.durations import parse_duration, spell_duration

# Fields of the trainer config, and the option that sets each.
OPTION_OF = {
    "metadata.run_name": "name",
    "metadata.tags": "tags",
    "payload.resources.gpus": "gpu",
    "payload.resources.cpus": "cpus",
    "payload.resources.memory_mb": "memory",
    "payload.limits.time_s": "time_limit",
}


@dataclass
class OptionTexts:
    name: str = ""
    tags: str = ""  # separated by commas
    gpu: bool = False
    waits: bool = False  # for the GPU, instead of running without it
    cpus: str = ""
    memory: str = ""
    time_limit: str = ""
    gpus: int = 1  # how many, if any; a copied run may have asked for several

    def problems(self, gpu_count: int | None = None) -> dict[str, str]:
        """What is wrong, by option. `gpu_count`: of the daemon's machine; None: not known yet."""
        found = {name: problem for name, read in _READ.items() if (problem := _problem(read, getattr(self, name)))}
        if self.gpu and self.waits and gpu_count is not None and self.gpus > gpu_count:
            have = "no GPU" if gpu_count == 0 else f"only {gpu_count}"
            found["gpu"] = f"This machine has {have}, so the run would wait forever."
        return found

    def options(self) -> RunOptions:
        """What is submitted. Texts with a problem are left out."""
        limit = _value(parse_duration, self.time_limit)
        return RunOptions(
            name=self.name.strip(),
            tags=tuple(filter(None, (tag.strip() for tag in self.tags.split(",")))),
            gpus=self.gpus if self.gpu else 0,
            gpus_mandatory=self.gpu and self.waits,
            cpus=_value(parse_cpus, self.cpus),
            memory_mb=_value(parse_memory, self.memory),
            limits={} if limit is None else {"time_s": limit},
        )

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "OptionTexts":
        """Those of a run's trainer config."""
        metadata, payload = config.get("metadata") or {}, config.get("payload") or {}
        resources, limits = payload.get("resources") or {}, payload.get("limits") or {}
        gpus = resources.get("gpus") or {}
        cpus, memory, limit = resources.get("cpus"), resources.get("memory_mb"), limits.get("time_s")
        return cls(
            name=str(metadata.get("run_name") or ""),
            tags=", ".join(map(str, metadata.get("tags") or ())),
            gpu=bool(gpus.get("requested")),
            waits=bool(gpus.get("mandatory")),
            cpus=f"{cpus:g}" if cpus is not None else "",
            memory=f"{memory}M" if memory else "",
            time_limit=spell_duration(limit) if limit else "",
            gpus=max(1, int(gpus.get("requested") or 1)),
        )


_READ: dict[str, Callable[[str], Any]] = {"cpus": parse_cpus, "memory": parse_memory, "time_limit": parse_duration}


def _problem(read: Callable[[str], Any], text: str) -> str:
    try:
        read(text) if text.strip() else None
    except ValueError as error:
        return f"{str(error).rstrip('.')}."
    return ""


def _value(read: Callable[[str], Any], text: str) -> Any:
    return None if not text.strip() or _problem(read, text) else read(text.strip())


def describe_gpus(gpus: list[tuple[str, str]] | None) -> str:
    """The GPUs of the machine in words. Each is its name and why it is not free; None: not known yet."""
    if gpus is None:
        return "Waiting for the daemon to list its GPUs."
    if not gpus:
        return "This machine has no GPU: the run would start without one."
    free = sum(not busy for _, busy in gpus)
    names = ", ".join(dict.fromkeys(name for name, _ in gpus))
    return f"{names}: {free} of {len(gpus)} free."


def describe_machine(cpus: float, memory_mb: float) -> str:
    return f"This machine has {cpus:g} CPUs and {format_memory(memory_mb)} for runs."
