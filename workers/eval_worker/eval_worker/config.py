"""The evaluation worker's settings: the script, and how it is driven."""

from functools import cached_property
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.script import WAIT, EvalScript
from mosaic_sdk.settings import Settings, setting

SCRIPT, MANUAL = "script", "manual"
MODES = (SCRIPT, MANUAL)


class EvalConfig(Settings):
    """What is evaluated (`script`: docs/howto/evaluate.md describes it) and who decides when a step is taken."""

    script: dict[str, Any] = setting({}, "The evaluation: env, operators, lanes, seeds and so on.")
    mode: str = setting(SCRIPT, "script: run unattended; manual: every step waits for a command.", choices=MODES)
    resume_from: str = setting("", "Journal of an evaluation to continue: a file, or a run.", checkpoint=True)
    seed: int | None = setting(
        None,
        "Added to the seeds of operators that choose at random; environments keep the script's seeds.",
        minimum=0,
        schema_default=0,
    )
    heartbeat_s: float = setting(10.0, "Seconds between heartbeats.", exclusive_minimum=0)

    @cached_property
    def parsed(self) -> EvalScript:
        """The script with all defaults."""
        return EvalScript.parse(self.script, self.mode)

    def check(self) -> None:
        if self.mode == SCRIPT and self.parsed.on_done == WAIT:
            raise ConfigError("on_done: wait is for manual evaluations, in which a command starts the next episode.")
