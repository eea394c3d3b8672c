"""An evaluation that is being put together: rows of a form become the document of a script."""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = ("random", "passive", "human", "rl", "llm", "worker")
KIND_WORDS = {
    "random": "random player",
    "passive": "does nothing",
    "human": "person (you)",
    "rl": "trained run",
    "llm": "language model",
    "worker": "worker",
}
DEFAULT_NAMES = {"human": "me", "rl": "policy", "llm": "model"}
NEWEST, BEST = "", "best"  # checkpoints of a trained run
DEFAULT_SEEDS = "0-9"
FIELD_KEY = re.compile(r"(env|seeds|max_steps|name)\b")


@dataclass(frozen=True)
class OperatorDraft:
    """One row: who plays. Only the fields of its kind count."""

    name: str
    kind: str = "random"
    run: str = ""
    checkpoint: str = NEWEST
    model: str = ""
    base_url: str = ""
    key_env: str = ""  # the variable that holds the key; a key itself is never part of a script
    key_file: str = ""
    worker: str = ""
    time_limit_s: str = ""  # for one decision of a person

    def spec(self) -> dict[str, Any]:
        """The operator as a script has it."""
        if self.kind == "rl":
            return _filled({"kind": "rl", "run": self.run, "checkpoint": self.checkpoint})
        if self.kind == "llm":
            address = {"model": self.model, "base_url": self.base_url}
            return _filled({"kind": "llm", **address, "api_key_env": self.key_env, "api_key_file": self.key_file})
        if self.kind == "worker":
            return _filled({"kind": "worker", "worker": self.worker})
        if self.kind == "human" and self.time_limit_s.strip():
            return {"kind": "human", "time_limit_s": _number(self.time_limit_s)}
        return {"kind": self.kind}

    def word(self) -> str:
        """The operator on a command line, as in `--operator me=human`."""
        rest = {"rl": ":".join(filter(None, (self.run, self.checkpoint))), "worker": self.worker}.get(self.kind, "")
        if self.kind == "llm":
            rest = f"{self.model}@{self.base_url}" if self.base_url else self.model
        return f"{self.name}={self.kind}{f':{rest}' if rest else ''}"


@dataclass(frozen=True)
class EvaluationDraft:
    env: str = ""
    operators: tuple[OperatorDraft, ...] = field(default_factory=tuple)
    seeds: str = DEFAULT_SEEDS
    max_steps: str = ""
    name: str = ""

    def document(self) -> dict[str, Any]:
        """The script. Texts stay as they were typed, so that an error names them."""
        document = {"env": self.env.strip(), "operators": {one.name.strip(): one.spec() for one in self.operators}}
        more = {"seeds": self.seeds.strip(), "max_steps": _number(self.max_steps), "name": self.name.strip()}
        return {**document, **{key: value for key, value in more.items() if value != ""}}

    def problem(self) -> str:
        """What is wrong with the form before a script is parsed; empty if nothing is."""
        if not self.env.strip():
            return "env is missing: name an environment, such as MiniGrid-Empty-5x5-v0."
        names = [one.name.strip() for one in self.operators]
        if twice := next((name for name in names if names.count(name) > 1), None):
            return f"operators.{twice}: there are two operators with this name."
        if unnamed := next((one for one in self.operators if one.kind == "rl" and not one.run), None):
            return f"operators.{unnamed.name}.run is missing: choose a trained run."
        return ""

    def command_line(self, is_manual: bool, host: str = "") -> str:
        """The command that does the same."""
        words = ["mosaic", *(("--host", host) if host else ()), "eval", "--env", self.env.strip() or "ENV"]
        for one in self.operators:
            words += ["--operator", one.word()]
        words += ["--seeds", self.seeds.strip()] if self.seeds.strip() else []
        words += ["--max-steps", self.max_steps.strip()] if self.max_steps.strip() else []
        for one in self.operators:
            for key, value in one.spec().items():
                if key in ("time_limit_s", "api_key_env", "api_key_file"):
                    words += ["--set", f"{one.name}.{key}={value}"]
        words += ["--name", self.name.strip()] if self.name.strip() else []
        return shlex.join([*words, *(["--manual"] if is_manual else [])])


def free_name(kind: str, taken: Collection[str]) -> str:
    """A name for a new operator: its kind, with a number if it is taken."""
    name = DEFAULT_NAMES.get(kind, kind)
    numbered = (f"{name}-{number}" for number in range(2, 10_000))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def place_of(message: str, names: Collection[str] = ()) -> str:
    """The field that an error is about: `operators.me`, `env`, `seeds`, `max_steps`, `name`; else empty."""
    # The longest name first: one may be the beginning of another.
    for name in sorted(names, key=len, reverse=True):
        if message.startswith((f"operators.{name}:", f"operators.{name}.", f"operators.{name} ")):
            return f"operators.{name}"
    found = FIELD_KEY.match(message)
    return found[1] if found else ""


def settings_of(run_config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The settings of a run's worker, from its config: of an evaluation `script` and `mode`."""
    worker = ((run_config or {}).get("metadata") or {}).get("worker") or {}
    settings = worker.get("config")
    return settings if isinstance(settings, Mapping) else {}


def _filled(spec: dict[str, str]) -> dict[str, Any]:
    return {key: value.strip() for key, value in spec.items() if value.strip()}


def _number(text: str) -> Any:
    """A number if it is one; else the text, for the error."""
    text = text.strip()
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
