"""What goes wrong at an endpoint. None of it is the model's play: it is counted apart and never scored.

kind           seen as                                             retried
connection     refused, reset, no such host                        yes
timeout        no whole answer in timeout_s                        yes
rate_limit     429                                                 yes, after Retry-After
server_error   5xx, 408, 409, 425                                  yes
garbage        an answer that is not a chat completion             yes
quota          429 because nothing is left to spend                no
key            401, 403                                            no
not_found      404: the model or the address                       no
bad_request    other 4xx: a prompt that is too long, say           no
"""

import email.utils
import os
import time
from collections.abc import Mapping

import httpx2
import openai

_RETRIED = (408, 409, 425)
_LONGEST = 300


class EndpointError(Exception):
    """A request that failed. The text is a clause without a full stop."""

    def __init__(
        self, kind: str, message: str, *, is_retryable: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


def classify(error: Exception) -> EndpointError:
    """Any exception of the client as an EndpointError."""
    if isinstance(error, EndpointError):
        return error
    if isinstance(error, (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException)):
        return EndpointError("timeout", "no answer in time", is_retryable=True)
    if isinstance(error, openai.APIStatusError):
        return _by_status(error)
    if isinstance(error, (openai.APIConnectionError, httpx2.HTTPError, OSError)):
        return EndpointError("connection", _root_cause(error), is_retryable=True)
    if isinstance(error, (ValueError, openai.APIError)):
        return EndpointError("garbage", "the answer is not JSON", is_retryable=True)
    raise error


def _by_status(error: openai.APIStatusError) -> EndpointError:
    status, said = error.status_code, _said(error)
    if status == 429 and error.code == "insufficient_quota":
        return EndpointError("quota", f"the quota is used up (429{said})")
    if status == 429:
        wait = retry_after(error.response.headers)
        return EndpointError("rate_limit", f"too many requests (429{said})", is_retryable=True, retry_after_s=wait)
    if status >= 500 or status in _RETRIED:
        wait = retry_after(error.response.headers)
        return EndpointError(
            "server_error", f"the server failed ({status}{said})", is_retryable=True, retry_after_s=wait
        )
    if status in (401, 403):
        return EndpointError("key", f"the key was refused ({status}{said})")
    if status == 404:
        return EndpointError("not_found", f"not found (404{said})")
    return EndpointError("bad_request", f"the request was refused ({status}{said})")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the server asks: a number or a date."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit_s)
        except (KeyError, ValueError):
            continue
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None


def _said(error: openai.APIStatusError) -> str:
    """The server's own words, in one line."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else body
    text = " ".join(message.split()) if isinstance(message, str) else ""
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f": {text.rstrip('.')}" if text else ""


def _root_cause(error: BaseException) -> str:
    """The innermost reason: "Connection refused" says more than "Connection error"."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return reason[:_LONGEST].rstrip(".")
