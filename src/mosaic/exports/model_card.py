"""README.md of an exported model: a card in the layout of the Hugging Face Hub.

---
library_name, tags, model-index          read by the Hub
---
what it is, how good it is, how to load it, where it comes from
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from mosaic.exports.evaluations import EVALUATION, TRAINING, Score
from mosaic.model.visible import visible, visible_line

RL = "reinforcement-learning"
_MEANING = {
    EVALUATION: "an evaluation run on seeds of its own",
    TRAINING: "the newest training episodes, with exploration: not an evaluation",
}


@dataclass(frozen=True)
class Card:
    """What the card says."""

    name: str
    library: str
    algo: str
    env_id: str
    files: Mapping[str, str]  # each file, and what it is
    scores: list[Score]
    settings: Mapping[str, Any]
    provenance: Mapping[str, str]
    usage: str = ""
    left_out: tuple[str, ...] = ()
    clip: str = ""  # the name of its file
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        parts = [self._front(), self._title(), self._results(), self._clip(), self._files(), self._loading()]
        return "\n\n".join([*parts, self._settings(), self._provenance(), self._sharing()]) + "\n"

    def _front(self) -> str:
        import yaml

        front: dict[str, Any] = {
            "library_name": _line(self.library),
            "tags": self.tags(),
            "model-index": [self._index()],
        }
        text = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000)
        return f"---\n{text}---"

    def tags(self) -> list[str]:
        named = [self.env_id, self.algo, self.library, "mosaic"]
        return list(dict.fromkeys([RL, *(_line(name) for name in named if name)]))

    def _index(self) -> dict[str, Any]:
        metrics = [self._metric(score) for score in self.scores[:1]]
        env = _line(self.env_id) or "unknown"
        results = {"task": {"type": RL, "name": RL}, "dataset": {"name": env, "type": env}, "metrics": metrics}
        return {"name": _line(self.algo or self.name), "results": [results] if metrics else []}

    def _metric(self, score: Score) -> dict[str, Any]:
        note = "" if score.kind == EVALUATION else f" ({score.kind})"
        return {"type": "mean_reward", "value": score.text, "name": f"mean_reward{note}", "verified": False}

    def _title(self) -> str:
        agent = f"**{_plain(self.algo)}** agent" if self.algo else "agent"
        where = f" in **{_plain(self.env_id)}**" if self.env_id else ""
        return f"# {_plain(self.name)}\n\nA trained {agent}{where}, exported by MOSAIC."

    def _results(self) -> str:
        if not self.scores:
            return "## Results\n\nThe run has neither evaluations nor finished episodes."
        lines = ["| measured in | episodes | mean return ± std | min | max | seeds | checkpoint |", "|-|-|-|-|-|-|-|"]
        lines += [_row(score) for score in self.scores]
        about = "\n".join(
            f"- {kind}: {_MEANING[kind]}" for kind in _MEANING if any(s.kind == kind for s in self.scores)
        )
        warning = (
            "" if self.scores[0].kind == EVALUATION else "\n\nThis policy has not been evaluated in a run of its own."
        )
        return f"## Results\n\n{chr(10).join(lines)}\n\n{about}{warning}".rstrip()

    def _clip(self) -> str:
        link = f"[{_plain(self.clip)}]({quote(self.clip)})"
        return f"A recorded episode: {link}" if self.clip else "No video was recorded."

    def _files(self) -> str:
        lines = [f"- {_code(name)}: {_plain(what)}" for name, what in self.files.items()]
        lines += [f"- Not included: {_plain(part)}" for part in self.left_out]
        lines += [f"- {_plain(note)}" for note in self.notes]
        return "## Files\n\n" + "\n".join(lines)

    def _loading(self) -> str:
        if not self.usage:
            return "## How to load it\n\nWith the library that trained it: the files are copies of its checkpoint."
        fence = "````" if "```" in self.usage else "```"
        return f"## How to load it\n\n{fence}python\n{visible(self.usage)}\n{fence}"

    def _settings(self) -> str:
        rows = "\n".join(f"| {_code(name)} | {_cell(value)} |" for name, value in self.settings.items())
        return f"## Settings\n\n| setting | value |\n|-|-|\n{rows}" if rows else "## Settings\n\nNone are recorded."

    def _provenance(self) -> str:
        return "## Provenance\n\n" + "\n".join(f"- {name}: {_plain(text)}" for name, text in self.provenance.items())

    def _sharing(self) -> str:
        return (
            "## Publishing it\n\nMOSAIC uploads nothing. With the command of `huggingface_hub`:\n\n"
            "```bash\nhf upload USER/MODEL . --exclude .mosaic-export\n```"
        )


def _row(score: Score) -> str:
    spread = "" if score.std is None else f" ± {score.std:.2f}"
    ends = [f"{value:.2f}" if value is not None else "" for value in (score.low, score.high)]
    where = f"evaluation {score.run_id}" if score.run_id else score.kind
    cells = [where, str(score.episodes), f"{score.mean:.2f}{spread}", *ends, score.seeds, _plain(score.checkpoint)]
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    return _plain(value if isinstance(value, str) else json.dumps(value))


def _line(text: str) -> str:
    return " ".join(str(text).split())


def _plain(text: str) -> str:
    """One line that no table, tag, link or heading can be broken with, or made of."""
    safe = visible_line(_line(text)).replace("<", "&lt;").replace("`", "'")
    return safe.replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")


def _code(text: str) -> str:
    """The same, with all its letters as they are: nothing in it is a link or a tag."""
    safe = visible_line(_line(text)).replace("<", "‹").replace("`", "'")
    return "`" + safe.replace("|", "\\|") + "`"
