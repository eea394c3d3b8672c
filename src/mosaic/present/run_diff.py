"""In what two runs differ: settings, seeds, operators, code, packages, machine.

Settings come from the daemon. The rest is in provenance.json of the run's folder, which its worker could have changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.present.settings_diff import SettingRow, compare_settings
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

Facts = Mapping[str, Any]
LONGEST_COMMIT = 12


@dataclass(frozen=True)
class Group:
    title: str
    rows: tuple[SettingRow, ...]

    @property
    def differing(self) -> tuple[SettingRow, ...]:
        return tuple(row for row in self.rows if row.differs)


@dataclass(frozen=True)
class RunDiff:
    groups: tuple[Group, ...] = ()  # without empty ones
    problems: tuple[str, ...] = field(default=())  # what could not be compared, and why

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, as far as it could be compared."""
        return not any(group.differing for group in self.groups)


def compare_runs(runs: "Sequence[Run]", provenance: Sequence[Facts | None], why_none: str) -> RunDiff:
    """The differences between runs. `provenance`: None for a run without one, and `why_none` says why."""
    seeds, settings = _split(_aligned(runs))
    known = [facts or {} for facts in provenance]
    parts: dict[str, Sequence[Facts | None]] = {
        "run": [_run_facts(run) for run in runs],
        "settings": settings,
        "seeds": seeds,
        "operators": [_operators(run, facts) for run, facts in zip(runs, known, strict=True)],
    }
    of_provenance: dict[str, Sequence[Facts]] = {
        "code": [_code(facts) for facts in known],
        "packages": [_packages(facts) for facts in known],
        "variables": [dict(_object(facts, "environment")) for facts in known],
        "machine": [_machine(facts) for facts in known],
    }
    for title, facts in of_provenance.items():
        # None: unknown, so that it differs from nothing.
        parts[title] = [each if found else None for each, found in zip(facts, provenance, strict=True)]
    groups = (Group(title, tuple(compare_settings(each))) for title, each in parts.items())
    return RunDiff(tuple(group for group in groups if group.rows), tuple(_problems(runs, provenance, why_none)))


def _problems(runs: "Sequence[Run]", provenance: Sequence[Facts | None], why_none: str) -> Iterator[str]:
    for run, facts in zip(runs, provenance, strict=True):
        if run.settings is None:
            yield f"Run {run.run_id} has no recorded settings: an older MOSAIC ran it. Settings are not compared."
        if not facts:
            yield f"Run {run.run_id} {why_none}. Code, packages and machine are not compared."


def _aligned(runs: "Sequence[Run]") -> list[Facts | None]:
    """The settings of each run; those of an imported one have the keys that the other runs use for them.

    A script that ran outside of MOSAIC wrote `gamma`, which is `extras.algo_params.gamma` of the same script here.
    """
    here = {key for run in runs if not run.origin for key in run.settings or {}}
    places: dict[str, list[str]] = {}
    for key in here:
        places.setdefault(key.rpartition(".")[2], []).append(key)

    def key_here(key: str) -> str:
        found = places.get(key, [])
        return found[0] if key not in here and len(found) == 1 else key

    return [
        {key_here(key): value for key, value in run.settings.items()} if run.origin and run.settings else run.settings
        for run in runs
    ]


def _split(settings: Sequence[Facts | None]) -> tuple[list[Facts | None], list[Facts | None]]:
    """Seeds, and all other settings."""
    seeds: list[Facts | None] = []
    others: list[Facts | None] = []
    for each in settings:
        seeds.append(each and {key: value for key, value in each.items() if _is_seed(key, value)})
        others.append(each and {key: value for key, value in each.items() if not _is_seed(key, value)})
    return seeds, others


def _is_seed(key: str, value: object) -> bool:
    return not isinstance(value, bool) and key.rpartition(".")[2].lower().removesuffix("s").endswith("seed")


def _run_facts(run: "Run") -> Facts:
    worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
    facts = {
        "worker": run.worker_name,
        "variant": worker.get("variant"),
        "script": worker.get("script"),
        "experiment": run.experiment,
        "parent": run.parent_run_id,
        "origin": run.origin,
        "CPUs": run.cpus,
        "memory (MB)": run.memory_mb,
        "GPUs": run.gpus_requested,
        "time limit (s)": run.time_limit_s,
    }
    return _present(facts)


def _operators(run: "Run", provenance: Facts) -> Facts:
    """What decided: `ppo.checkpoint`, `ppo.settings.temperature`, `ppo.packages.torch`."""
    entries = ((run.config or {}).get("metadata") or {}).get("operators") or {}
    recorded = _object(provenance, "operators")
    facts: dict[str, Any] = {}
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        found, resolved = _object(recorded, name), _object(entry, "resolved")
        facts[f"{name}.kind"] = entry.get("kind")
        facts |= {f"{name}.{key}": value for key, value in _object(resolved, "about").items()}
        facts |= {f"{name}.settings.{key}": value for key, value in _object(found, "settings").items()}
        facts |= {f"{name}.packages.{key}": value for key, value in _packages(found).items()}
        facts |= {f"{name}.code.{key}": value for key, value in _git(_object(found, "code")).items()}
    return _present(facts)


def _code(found: Facts) -> Facts:
    mosaic, worker = _object(found, "mosaic"), _object(found, "worker")
    facts = {"MOSAIC": mosaic.get("version"), "worker's source": worker.get("source")}
    facts |= {f"MOSAIC {key}": value for key, value in _git(mosaic).items()}
    facts |= {f"worker's {key}": value for key, value in _git(worker).items()}
    return _present(facts)


def _git(part: Facts) -> Facts:
    git = _object(part, "git")
    if not git:
        return {}
    return {"commit": str(git.get("commit"))[:LONGEST_COMMIT], "uncommitted changes": bool(git.get("dirty"))}


def _packages(found: Facts) -> Facts:
    python = _object(found, "python")
    listed = python.get("packages")
    pairs = (str(package).partition("==") for package in (listed if isinstance(listed, list) else ()))
    # Names of packages have no case.
    packages = {printable(name).lower(): version for name, _, version in pairs}
    return _present({"Python": python.get("version")}) | packages


def _machine(found: Facts) -> Facts:
    hardware = _object(found, "hardware")
    gpus = hardware.get("gpus")
    models = [_object({"gpu": gpu}, "gpu").get("model") for gpu in (gpus if isinstance(gpus, list) else ())]
    facts = {
        "host": found.get("host"),
        "CPU": hardware.get("cpu"),
        "cores": hardware.get("cores_usable"),
        "memory": hardware.get("memory"),
        "GPUs": ", ".join(str(model) for model in models),
        "GPUs of the run": found.get("cuda_visible_devices"),
        "kernel": hardware.get("kernel"),
        "architecture": hardware.get("machine"),
    }
    return _present(facts)


def _present(facts: Facts) -> dict[str, Any]:
    return {printable(str(name)): value for name, value in facts.items() if value not in (None, "")}


def _object(found: Facts, key: str) -> Facts:
    value = found.get(key) if isinstance(found, Mapping) else None
    return value if isinstance(value, Mapping) else {}
