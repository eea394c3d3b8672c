"""The check before the first decision: is the endpoint there, is the key good, does it serve the model?"""

import difflib
from typing import Any

from mosaic_sdk.llm.endpoint import Endpoint
from mosaic_sdk.llm.faults import EndpointError
from mosaic_sdk.llm.settings import EndpointSettings
from mosaic_sdk.player import CommandError

_MOST_NAMED = 10


class _Uncounted:
    """The check is no decision: nothing of it is in the ledger."""

    def sent(self) -> None: ...
    def failed(self, kind: str) -> None: ...
    def retried(self) -> None: ...


def greet(endpoint: Endpoint, config: EndpointSettings, has_key: bool) -> dict[str, Any]:
    """What the server says of itself. CommandError with what to do if it cannot be used. It costs no tokens."""
    try:
        models, server = endpoint.models(_Uncounted()), endpoint.server()
    except EndpointError as error:
        raise CommandError(_advice(error, config, has_key), kind="infrastructure") from None
    if config.check_model and models is not None and not _serves(models, config.model):
        raise CommandError(_unknown_model(models, config), kind="infrastructure")
    return server


def _serves(models: list[str], wanted: str) -> bool:
    """Some hosts list "models/NAME" and take both."""
    return any(name == wanted or name.endswith(f"/{wanted}") for name in models)


def _advice(error: EndpointError, config: EndpointSettings, has_key: bool) -> str:
    where = f"The endpoint {config.base_url}"
    if error.kind == "key":
        source = config.api_key_file or f"the variable {config.api_key_env}"
        if not has_key:
            return f"{where} asks for a key. Set {source} where the daemon is started, or name a file in api_key_file."
        return f"{where}: {error}. Correct the key in {source}."
    if error.kind == "connection":
        return f"{where} cannot be reached: {error}. Start the server, or correct base_url."
    if error.kind == "timeout":
        return f"{where} did not answer in {config.timeout_s:g} s. See whether the server is busy, or raise timeout_s."
    return f"{where} cannot be used: {error}."


def _unknown_model(models: list[str], config: EndpointSettings) -> str:
    near = difflib.get_close_matches(config.model, models, n=1)
    names = ", ".join(sorted(models)[:_MOST_NAMED]) + (" …" if len(models) > _MOST_NAMED else "")
    advice = f'Did you mean "{near[0]}"?' if near else f"Choose from: {names or 'none'}."
    return (
        f'model: {config.base_url} does not list "{config.model}". {advice} '
        "If it serves models that it does not list, set check_model=false."
    )
