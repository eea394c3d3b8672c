"""What a custom script says about itself in the comments at its top: `# @description: …`."""

import re
from dataclasses import dataclass
from pathlib import Path

_LINES = 30
_BYTES = 16384
_TAG = re.compile(r"#\s*@(\w+)\s*:?\s*(.*)")


@dataclass(frozen=True)
class ScriptHeader:
    description: str = ""
    phases: int | None = None
    total_timesteps: int | None = None
    problem: str = ""  # why the file cannot be used

    @property
    def sentence(self) -> str:
        """`Trains, resumes and evaluates. 3 phases, 50,000 steps.`; empty if the header says nothing."""
        phases = f"{self.phases} phase{'' if self.phases == 1 else 's'}" if self.phases else ""
        steps = f"{self.total_timesteps:,} steps" if self.total_timesteps else ""
        numbers = ", ".join(filter(None, (phases, steps)))
        return " ".join(filter(None, (self.description, f"{numbers}." if numbers else "")))


def read_header(path: str) -> ScriptHeader:
    """The tags of a script. A file without tags is valid: only the progress is then unknown."""
    try:
        with open(Path(path).expanduser(), "rb") as file:
            text = file.read(_BYTES).decode(errors="replace")
    except OSError as error:
        return ScriptHeader(problem=f"{path} cannot be read: {error.strerror}.")
    tags = {found[1]: found[2].strip() for found in map(_TAG.match, text.splitlines()[:_LINES]) if found}
    return ScriptHeader(tags.get("description", ""), _number(tags, "phases"), _number(tags, "total_timesteps"))


def _number(tags: dict[str, str], name: str) -> int | None:
    text = tags.get(name, "").replace("_", "").replace(",", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0 else None
