"""The settings of an endpoint: which model is asked, with which key, for how long, and what it costs."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from mosaic_sdk.config import ConfigError
from mosaic_sdk.settings import Settings, setting

HOSTED = "https://api.openai.com/v1"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}\Z")
_OUR_FIELDS = ("model", "messages", "response_format", "stream", "n", "temperature", "max_tokens", "seed")


class EndpointSettings(Settings):
    """Derive a worker's config from it, and call `check_endpoint` in its `check`."""

    model: str = setting("", "Name of the model, as the endpoint lists it.")
    base_url: str = setting(HOSTED, "The endpoint: any server that speaks OpenAI's chat API (vLLM, llama.cpp, hosted).")
    api_key_env: str = setting("OPENAI_API_KEY", "Environment variable that holds the key.")
    api_key_file: str = setting(
        "", "File that holds the key, readable by you alone (chmod 600); instead of the variable."
    )
    check_model: bool = setting(True, "Refuse a model that the endpoint does not list.")

    temperature: float | None = setting(0.0, "Sampling temperature; null: the server's default.", minimum=0, maximum=2)
    max_tokens: int = setting(512, "Most tokens of one answer.", minimum=1)
    max_tokens_name: str = setting(
        "max_tokens", "The request's name for that limit.", choices=("max_tokens", "max_completion_tokens")
    )
    extra_body: dict[str, Any] = setting({}, "More fields of each request, for options of one server.")

    timeout_s: float = setting(60.0, "Most seconds for one request.", exclusive_minimum=0)
    decision_timeout_s: float = setting(
        540.0,
        "Most seconds for a decision with all its requests; less than the operator's timeout_s.",
        exclusive_minimum=0,
    )
    max_retries: int = setting(5, "Retries of a request that failed (429, 5xx, timeouts).", minimum=0)
    retry_wait_s: float = setting(60.0, "Most seconds to wait before one retry.", exclusive_minimum=0)

    price_per_million_input: float | None = setting(None, "Price of a million input tokens.", minimum=0)
    price_per_million_cached: float | None = setting(
        None, "Price of a million input tokens that the server had cached; null: as other input.", minimum=0
    )
    price_per_million_output: float | None = setting(None, "Price of a million output tokens.", minimum=0)

    def check_endpoint(self) -> None:
        """ConfigError for an endpoint that cannot be used."""
        if not self.model:
            raise ConfigError("model is missing. Name one that the endpoint serves, such as: model=qwen3-8b")
        _check_url(self.base_url)
        # A key that was put here by mistake must not be repeated in a message.
        if not _VARIABLE.match(self.api_key_env):
            raise ConfigError("api_key_env: must be the name of a variable in capitals, such as OPENAI_API_KEY.")
        self.check_absolute("api_key_file")
        ours = sorted(set(_OUR_FIELDS) & set(self.extra_body))
        if ours:
            raise ConfigError(f"extra_body: {ours[0]} is set by the worker itself. Remove it.")

    def check_absolute(self, *names: str) -> None:
        """ConfigError if one of these settings is a relative path."""
        for name in names:
            path = getattr(self, name)
            if path and not os.path.isabs(os.path.expanduser(path)):
                raise ConfigError(f"{name}: must be an absolute path, because a run has a folder of its own.")


def _check_url(url: str) -> None:
    """ConfigError without the address: it may hold a password."""
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        raise ConfigError("base_url: is not a valid address. It looks like http://127.0.0.1:8080/v1") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError(
            "base_url: must not contain a user name, a password or a query. Put the key into the variable of "
            "api_key_env, or into api_key_file."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        raise ConfigError("base_url: must begin with http:// or https:// and a host, such as http://127.0.0.1:8080/v1")
