"""What the New run sheet submits: a run to train, a script, a run to resume, or a policy to evaluate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic.catalog.derived import EVAL, RESUME, derived_config
from mosaic.catalog.request import RunOptions, nest, trainer_config, worker_section
from mosaic.catalog.scripts import script_section
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

TRAIN, SCRIPT, RESUMED, EVALUATE = "train", "script", "resume", "evaluate"
MODES = (TRAIN, SCRIPT, RESUMED, EVALUATE)


@dataclass(frozen=True)
class RunRequest:
    mode: str = TRAIN
    worker: str = ""  # NAME or NAME@VARIANT; for a script, the worker in whose environment it runs
    settings: tuple[tuple[str, Any], ...] = ()  # as typed: dots nest
    options: RunOptions = field(default_factory=RunOptions)
    script: str = ""
    arguments: tuple[str, ...] = ()
    parent: str = ""  # the run to resume or to evaluate
    checkpoint: str = ""  # empty: the newest; `best`, or a path
    evaluation: Mapping[str, Any] = field(default_factory=dict)  # episodes, seed, video

    @property
    def is_complete(self) -> bool:
        """Whether it says what to run; its settings may still be invalid."""
        return bool({TRAIN: self.worker, SCRIPT: self.script}.get(self.mode, self.parent))

    def config(self, root: StateRoot | None) -> dict[str, Any]:
        """The trainer config, as the equivalent command line builds it. It reads the catalog: not in the GUI's thread.

        `root`: None if the daemon is on another machine.
        """
        settings = nest(self.settings)
        if self.mode == TRAIN:
            return trainer_config(worker_section(self.worker, settings, root), self.options)
        if self.mode == SCRIPT:
            if root is None:
                raise MosaicError(
                    "A script must be on the machine of the daemon. Run it there with: mosaic run --script"
                )
            section = script_section(self.script, self.worker, settings, self.arguments, root)
            return trainer_config(section, self.options)
        is_evaluation = self.mode == EVALUATE
        return derived_config(
            self.parent,
            EVAL if is_evaluation else RESUME,
            settings,
            self.options,
            self.checkpoint,
            self.evaluation if is_evaluation else None,
            is_remote=root is None,
        )
