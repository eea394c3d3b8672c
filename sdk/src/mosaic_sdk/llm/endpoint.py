"""The endpoint: requests with a deadline, retries with backoff, and a check before the first decision.

1. A request ends within timeout_s, whatever the server does: a slow trickle of bytes does not extend it.
2. A request that failed for a reason that may pass is sent again, at most max_retries times; Retry-After is honoured.
3. No exception of the client leaves this module: it would hold the request, and with it the key.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import openai

from mosaic_sdk import __version__
from mosaic_sdk.llm.credentials import Key
from mosaic_sdk.llm.faults import EndpointError, classify
from mosaic_sdk.llm.reply import Reply, read_reply
from mosaic_sdk.llm.settings import EndpointSettings
from mosaic_sdk.llm.slots import Slots

LARGEST_ANSWER = 8 * 1024 * 1024
_FIRST_WAIT_S = 0.5
_PROPS_TIMEOUT_S = 5.0
_PROPS = ("build_info", "model_alias", "model_ftype", "total_slots")

Body = dict[str, Any]
T = TypeVar("T")


class Tally(Protocol):
    """Counts what happened during a decision."""

    def sent(self) -> None: ...
    def failed(self, kind: str) -> None: ...
    def retried(self) -> None: ...


class Endpoint:
    """One endpoint and one key. `pause` waits before a retry."""

    def __init__(
        self,
        config: EndpointSettings,
        key: Key,
        slots: Slots,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._key = key
        self._slots = slots
        self._pause = pause
        self._is_llama_cpp = False
        self._runner = asyncio.Runner()
        self._client = openai.AsyncOpenAI(
            api_key=key.reveal(),
            base_url=config.base_url,
            max_retries=0,  # here, where they are counted
            timeout=config.timeout_s,
            default_headers={"User-Agent": f"mosaic-llm-worker/{__version__}"},
        )
        # The client imports its parts when they are first used, which would count as the server's time.
        self._completions = self._client.chat.completions.with_streaming_response
        self._models = self._client.models.with_streaming_response

    def complete(self, body: Body, tally: Tally, deadline: float) -> Reply:
        """The reply to a request. EndpointError when the retries are used up, or the time, or are of no use."""
        return self._runner.run(self._with_retries(lambda: self._ask(body), tally, deadline, self._config.max_retries))

    def models(self, tally: Tally) -> list[str] | None:
        """The models that the endpoint lists; None if it has no list, or is too busy to say."""
        try:
            deadline = time.monotonic() + self._config.decision_timeout_s
            return self._runner.run(
                self._with_retries(self._list_models, tally, deadline, min(1, self._config.max_retries))
            )
        except EndpointError as error:
            if error.kind in ("not_found", "bad_request", "garbage", "rate_limit"):
                return None
            raise

    def server(self) -> dict[str, Any]:
        """What a llama.cpp or vLLM server says of itself; empty for others. EndpointError if it refuses the key."""
        return self._runner.run(self._describe_server())

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()

    async def _with_retries(self, call: Callable[[], Awaitable[T]], tally: Tally, deadline: float, most: int) -> T:
        for number in range(most + 1):
            try:
                return await self._in_turn(call, tally, deadline)
            except EndpointError as error:
                tally.failed(error.kind)
                wait_s = self._wait_s(number, error, deadline - time.monotonic())
                if not error.is_retryable or number == most or wait_s is None:
                    raise EndpointError(error.kind, self._key.redacted(str(error))) from None
                self._say(f"{error}; retry {number + 1} of {most} in {wait_s:.1f} s")
                tally.retried()
                await self._pause(wait_s)
        raise AssertionError("the loop ends with a return or an exception")

    async def _in_turn(self, call: Callable[[], Awaitable[T]], tally: Tally, deadline: float) -> T:
        try:
            async with self._slots.one(deadline):
                tally.sent()
                return await self._in_time(call, min(self._config.timeout_s, deadline - time.monotonic()))
        except TimeoutError:
            raise EndpointError("timeout", "max_concurrency left no time for the request") from None

    async def _in_time(self, call: Callable[[], Awaitable[T]], limit_s: float) -> T:
        failure: EndpointError
        try:
            async with asyncio.timeout(limit_s):
                return await call()
        except Exception as error:  # noqa: BLE001  # the edge: classify raises again what the client does not raise
            failure = classify(error)
        # Raised outside of the handler: nothing of the client's exception, which holds the request, is kept.
        raise failure

    def _wait_s(self, number: int, error: EndpointError, left_s: float) -> float | None:
        """How long to wait before the next try; None if that is longer than the server or the decision may take."""
        longest = self._config.retry_wait_s
        wait_s = min(longest, _FIRST_WAIT_S * 2.0**number) * random.uniform(0.5, 1.0)
        if error.retry_after_s is not None:
            # Clients that were told the same moment must not all come back in it.
            wait_s = error.retry_after_s + random.uniform(0, 0.1)
        return wait_s if (error.retry_after_s or 0.0) <= longest and wait_s < left_s else None

    async def _ask(self, body: Body) -> Reply:
        async with self._completions.create(**body) as response:
            data = await _limited(response.iter_bytes())
        return read_reply(_json(data))

    async def _list_models(self) -> list[str]:
        async with self._models.list() as response:
            document = _json(await _limited(response.iter_bytes()))
        listed = document.get("data") if isinstance(document, dict) else None
        if not isinstance(listed, list):
            raise EndpointError("garbage", "the list of models is not one")
        self._is_llama_cpp = any(isinstance(one, dict) and one.get("owned_by") == "llamacpp" for one in listed)
        return [name for one in listed if isinstance(one, dict) for name in _names(one)]

    async def _describe_server(self) -> dict[str, Any]:
        """/props of llama.cpp and /version of vLLM lie beside /v1, not below it."""
        parts = urlsplit(self._config.base_url)
        client = self._client.with_options(base_url=f"{parts.scheme}://{parts.netloc}")
        for path in ("/props", "/version"):
            try:
                async with asyncio.timeout(_PROPS_TIMEOUT_S):
                    found = await client.get(path, cast_to=object)
            except openai.AuthenticationError as error:
                # llama.cpp lists its models to everybody; this is the first answer that needs the key.
                if self._is_llama_cpp:
                    raise EndpointError("key", self._key.redacted(str(classify(error)))) from None
                continue
            except Exception:  # noqa: BLE001  # the edge: most servers have neither, and nothing depends on it
                continue
            if isinstance(found, dict) and found:
                return _server_fields(found)
        return {}

    def _say(self, text: str) -> None:
        print(f"llm: {self._config.base_url}: {self._key.redacted(text)}", file=sys.stderr, flush=True)


async def _limited(chunks: AsyncIterator[bytes]) -> bytes:
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > LARGEST_ANSWER:
            raise EndpointError("garbage", f"the answer is larger than {LARGEST_ANSWER >> 20} MiB", is_retryable=True)
    return bytes(data)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise EndpointError("garbage", "the answer is not JSON", is_retryable=True) from None


def _names(model: Body) -> list[str]:
    aliases = model.get("aliases")
    return [str(name) for name in (model.get("id"), *(aliases if isinstance(aliases, list) else ())) if name]


def _server_fields(found: Body) -> dict[str, Any]:
    fields = {name: found[name] for name in (*_PROPS, "version") if isinstance(found.get(name), (str, int))}
    settings = found.get("default_generation_settings")
    if isinstance(settings, dict) and isinstance(settings.get("n_ctx"), int):
        fields["n_ctx"] = settings["n_ctx"]
    return fields
