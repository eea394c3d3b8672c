"""The environment and the operators of an evaluation script, in their short and long forms."""

import difflib
import re
from typing import Any, Dict, Mapping

from mosaic_sdk.config import ConfigError
from mosaic_sdk.operators.document import a_list, a_name, a_text, an_object, one_of, refuse_unknown
from mosaic_sdk.values import checked, shown

RL, LLM, WORKER, HUMAN, RANDOM, PASSIVE = "rl", "llm", "worker", "human", "random", "passive"
KINDS = (RL, LLM, WORKER, HUMAN, RANDOM, PASSIVE)
RESOLVED = (RL, LLM, WORKER)  # kinds that run in another worker's environment: the daemon finds their command
APIS = ("auto", "aec", "parallel")

_LLM_SETTINGS = ("model", "base_url", "api_key_env", "api_key_file")
_KEYS = {
    RL: ("run", "checkpoint", "settings", "owns_env"),
    LLM: ("settings", *_LLM_SETTINGS),
    WORKER: ("worker", "settings", "owns_env"),
    HUMAN: ("time_limit_s",),
    RANDOM: (),
    PASSIVE: (),
}
_TIMEOUT_S = {LLM: 600.0, HUMAN: None}  # of one decision; 60 s for the others
_SHORT = "random, passive, human, rl:RUN, rl:RUN:best, rl:RUN:PATH, llm:MODEL, llm:MODEL@URL or worker:NAME"
_ENDPOINT = re.compile(r"(.+?)@(https?://.+)", re.DOTALL)
_SECRET_IN_ADDRESS = re.compile(r"//[^/?#]*@|[?#]")
_SECONDS = {"exclusiveMinimum": 0, "maximum": 10**9}


def parse_env(value: Any) -> Dict[str, Any]:
    """{"id", "kwargs", "wrappers": [{"name", "kwargs"}], "api"}"""
    given = {"id": value} if isinstance(value, str) else an_object(value, "env")
    refuse_unknown(given, ("id", "kwargs", "wrappers", "api"), "env")
    if given.get("id") is None:
        raise ConfigError("env.id is missing: name an environment, such as MiniGrid-Empty-8x8-v0.")
    wrappers = a_list(given.get("wrappers") or [], "env.wrappers")
    return {
        "id": a_text(given["id"], "env.id" if isinstance(value, Mapping) else "env"),
        "kwargs": an_object(given.get("kwargs") or {}, "env.kwargs"),
        "wrappers": [_wrapper(one, f"env.wrappers[{place}]") for place, one in enumerate(wrappers)],
        "api": checked(given.get("api") or "auto", ["string"], {"enum": APIS}, "env.api"),
    }


def parse_operators(value: Any) -> Dict[str, Dict[str, Any]]:
    """Each operator by its name, as an object with all of its keys."""
    given = an_object(value, "operators")
    if not given:
        raise ConfigError("operators: must name at least one operator.")
    return {a_name(name, "operators"): parse_operator(spec, f"operators.{name}") for name, spec in given.items()}


def parse_operator(value: Any, path: str) -> Dict[str, Any]:
    """One operator, from its short or its long form."""
    given = _from_text(value, path) if isinstance(value, str) else an_object(value, path)
    if given.get("kind") is None:
        raise ConfigError(f"{path}.kind is missing. Choose from: {', '.join(KINDS)}.")
    kind = one_of(a_text(given["kind"], f"{path}.kind"), KINDS, f"{path}.kind", "kind")
    refuse_unknown(given, ("kind", *_KEYS[kind], "timeout_s"), path)
    return {"kind": kind, **_own_keys(kind, given, path), "timeout_s": _timeout(kind, given, path)}


def _own_keys(kind: str, given: Mapping[str, Any], path: str) -> Dict[str, Any]:
    if kind == HUMAN:
        return {"time_limit_s": _seconds(given.get("time_limit_s"), f"{path}.time_limit_s")}
    if kind in (RANDOM, PASSIVE):
        return {}
    settings = an_object(given.get("settings") or {}, f"{path}.settings")
    if kind == LLM:
        return {"settings": _llm_settings(given, settings, path)}
    named = _rl_names(given, path) if kind == RL else {"worker": _required(given, "worker", path)}
    owns_env = given.get("owns_env")
    owned = checked(True if owns_env is None else owns_env, ["boolean"], {}, f"{path}.owns_env")
    return {**named, "settings": settings, "owns_env": owned}


def _rl_names(given: Mapping[str, Any], path: str) -> Dict[str, str]:
    checkpoint = checked(given.get("checkpoint") or "", ["string"], {}, f"{path}.checkpoint")
    return {"run": _required(given, "run", path), "checkpoint": str(checkpoint)}


def _llm_settings(given: Mapping[str, Any], settings: Dict[str, Any], path: str) -> Dict[str, Any]:
    for key in _LLM_SETTINGS:
        if given.get(key) is not None:
            value = a_text(given[key], f"{path}.{key}")
            if settings.get(key, value) != value:
                raise ConfigError(
                    f"{path}.{key}: is the same setting as {path}.settings.{key} but has another value. "
                    "Keep one of them."
                )
            settings[key] = value
    if not settings.get("model"):
        raise ConfigError(f"{path}.model is missing: name the model that the endpoint serves.")
    # Here and not only in the worker: a script is stored, and a secret must not be.
    if _SECRET_IN_ADDRESS.search(str(settings.get("base_url") or "")):
        raise ConfigError(
            f"{path}.base_url: must not contain a user name, a password or a query. Put the key into the variable of "
            "api_key_env, or into api_key_file."
        )
    return settings


def _timeout(kind: str, given: Mapping[str, Any], path: str) -> Any:
    value = given.get("timeout_s")
    return _TIMEOUT_S.get(kind, 60.0) if value is None else _seconds(value, f"{path}.timeout_s")


def _seconds(value: Any, path: str) -> Any:
    return None if value is None else float(checked(value, ["number"], _SECONDS, path))


def _required(given: Mapping[str, Any], key: str, path: str) -> str:
    if given.get(key) is None:
        raise ConfigError(f"{path}.{key} is missing.")
    return a_text(given[key], f"{path}.{key}")


def _from_text(text: str, path: str) -> Dict[str, Any]:
    kind, _, rest = text.partition(":")
    if kind in (HUMAN, RANDOM, PASSIVE) and not rest:
        return {"kind": kind}
    if kind == RL and rest:
        run, _, checkpoint = rest.partition(":")
        return {"kind": kind, "run": run, "checkpoint": checkpoint}
    if kind == LLM and rest:
        return {"kind": kind, **_endpoint(rest, path)}
    if kind == WORKER and rest:
        return {"kind": kind, "worker": rest}
    near = difflib.get_close_matches(kind, KINDS, n=1)
    meant = f" Did you mean '{near[0]}'?" if near and near[0] != kind else ""
    raise ConfigError(f"{path}: must be {_SHORT}, not {shown(text)}.{meant}")


def _endpoint(text: str, path: str) -> Dict[str, str]:
    found = _ENDPOINT.fullmatch(text)
    if found:
        return {"model": found[1], "base_url": found[2]}
    # Without an address the model is asked for at the client's default endpoint, a stranger to a misspelled one.
    if "@" in text[1:]:
        raise ConfigError(
            f"{path}: after @ there must be an address such as http://127.0.0.1:8080/v1, not {shown(text)}. "
            "A model with an @ in its name has to be written as {kind: llm, model: NAME}."
        )
    return {"model": text}


def _wrapper(value: Any, path: str) -> Dict[str, Any]:
    given = {"name": value} if isinstance(value, str) else an_object(value, path)
    refuse_unknown(given, ("name", "kwargs"), path)
    return {"name": _required(given, "name", path), "kwargs": an_object(given.get("kwargs") or {}, f"{path}.kwargs")}
