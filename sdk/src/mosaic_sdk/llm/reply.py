"""One reply of an endpoint, read from its JSON without trusting it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mosaic_sdk.llm.faults import EndpointError


class Reply(NamedTuple):
    content: str
    refusal: str = ""
    reasoning: str = ""  # what a reasoning model thought, where the server says so
    finish_reason: str = ""
    model: str = ""
    fingerprint: str = ""
    tokens_in: int = 0
    tokens_cached: int = 0  # of tokens_in
    tokens_out: int = 0


def read_reply(document: Any) -> Reply:
    """The reply in a chat completion. EndpointError if the document is something else."""
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not choices:
        raise EndpointError("garbage", "the answer has no choices", is_retryable=True)
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, (str, type(None))):
        raise EndpointError("garbage", "the answer has no message", is_retryable=True)
    usage = _mapping(document.get("usage"))
    finish_reason = _text(choices[0].get("finish_reason"))
    return Reply(
        content=valid_text(content or ""),
        refusal=_text(message.get("refusal")) or ("content filter" if finish_reason == "content_filter" else ""),
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        finish_reason=finish_reason,
        model=_text(document.get("model")),
        fingerprint=_text(document.get("system_fingerprint")),
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_cached=_cached(usage, document),
        tokens_out=_count(usage.get("completion_tokens")),
    )


def _cached(usage: Mapping[str, Any], document: Mapping[str, Any]) -> int:
    """Older llama.cpp servers state it only among their timings."""
    details = _mapping(usage.get("prompt_tokens_details"))
    return _count(details.get("cached_tokens")) or _count(_mapping(document.get("timings")).get("cache_n"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def valid_text(text: str) -> str:
    """Half of a surrogate pair, which JSON can hold and UTF-8 cannot, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _text(value: Any) -> str:
    return valid_text(value) if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
