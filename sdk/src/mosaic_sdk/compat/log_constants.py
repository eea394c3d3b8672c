"""Log messages with a code. The public MOSAIC has thousands of LOG_… names; here every such name exists."""

import logging
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, Union

# A record cannot have these as `extra`: logging raises KeyError.
_RESERVED = {*logging.LogRecord("", 0, "", 0, "", (), None).__dict__, "message", "asctime", "taskName"}


@dataclass(frozen=True)
class LogConstant:
    code: str
    level: Union[str, int] = "INFO"
    message: str = ""
    component: str = ""
    subcomponent: str = ""
    tags: Tuple[str, ...] = ()


def log_constant(
    logger: logging.Logger,
    constant: LogConstant,
    *,
    message: Optional[str] = None,
    extra: Optional[Mapping[str, Any]] = None,
    exc_info: Any = None,
) -> None:
    """Log the constant's message, and `message` behind it."""
    level = constant.level if isinstance(constant.level, int) else logging.getLevelName(constant.level)
    text = " | ".join(part for part in (constant.message, message) if part)
    known: Dict[str, Any] = {"log_code": constant.code, "component": constant.component}
    known["subcomponent"], known["tags"] = constant.subcomponent, ",".join(constant.tags)
    kept = {name: value for name, value in {**known, **(extra or {})}.items() if name not in _RESERVED}
    logger.log(
        level if isinstance(level, int) else logging.INFO, "%s %s", constant.code, text, extra=kept, exc_info=exc_info
    )


class LogConstantMixin:
    """Adds log_constant() to a class with a `_logger`."""

    _logger: logging.Logger

    def log_constant(self, constant: LogConstant, **details: Any) -> None:
        log_constant(self._logger, constant, **details)


def __getattr__(name: str) -> LogConstant:
    if not name.startswith("LOG_"):
        raise AttributeError(f"module has no attribute {name!r}")
    words = name[len("LOG_") :].lower().split("_")
    level = "ERROR" if {"error", "failed", "failure", "exception"} & set(words) else "INFO"
    level = "WARNING" if {"warning", "warn"} & set(words) else level
    return LogConstant(code=name, level=level, message=" ".join(words), component=words[0])
