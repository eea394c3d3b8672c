"""The JSON Schema of a library's worker: its settings, and the hyperparameters of each algorithm."""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Type

from mosaic_sdk import keywords
from mosaic_sdk.library.settings import INTERACTIVE, POLICY_EVAL, RESUME, LibrarySettings
from mosaic_sdk.schema import schema_of

Parts = Mapping[str, Mapping[str, Any]]
# Where `mosaic eval` and operators put what they know, if the worker has such a setting.
_EVALUATE = {"eval_capture_video": "{video}", "device": "{parent}"}
_PLAY = {"env_kwargs": "{env_kwargs}", "device": "{parent}"}


def library_schema(
    config: Type[LibrarySettings],
    *,
    title: str,
    lab: Mapping[str, Mapping[str, Any]],
    examples: Sequence[str],
    by_algorithm: Mapping[str, Parts],
    algorithms: Sequence[str] = (),
    unavailable: Optional[Mapping[str, str]] = None,
    variants: Optional[Mapping[str, Mapping[str, str]]] = None,
    export: str = "",
) -> Dict[str, Any]:
    """The schema. `by_algorithm`: a JSON Schema property for each hyperparameter of each algorithm.

    `algorithms`: the names of all, if `by_algorithm` does not have them (the library is not installed, say).
    `unavailable`: the library's algorithms that the worker does not run, with the reason.
    """
    schema = schema_of(
        config,
        title=title,
        lab=lab,
        examples=examples,
        resume={"extras.mode": RESUME, "extras.policy_path": "{checkpoint}"},
        evaluate=_evaluate(config),
        interactive=_as_operator(config),
        inherits_with=["extras.policy_path", "extras.checkpoint_path"],
        variants=variants,
        export=export,
    )
    schema["properties"]["algo"]["enum"] = list(algorithms or by_algorithm)
    if unavailable:
        schema["properties"]["algo"][keywords.UNAVAILABLE] = dict(unavailable)
    schema["properties"]["extras"]["properties"]["algo_params"] = {
        "type": "object",
        "properties": merged(by_algorithm),
        "additionalProperties": False,
        keywords.ALGORITHMS: by_algorithm,
    }
    return schema


def _evaluate(config: Type[LibrarySettings]) -> Dict[str, str]:
    """The settings of `mosaic eval RUN`; the checkpoint determines the algorithm and the environment."""
    keys = {"extras.mode": POLICY_EVAL, "extras.policy_path": "{checkpoint}", "seed": "{seed}"}
    return {**keys, "extras.eval_episodes": "{episodes}", **_known(config, _EVALUATE)}


def _as_operator(config: Type[LibrarySettings]) -> Dict[str, Any]:
    keys = {"extras.mode": INTERACTIVE, "extras.policy_path": "{checkpoint}", "algo": "{algo}", "env_id": "{env_id}"}
    return {"settings": {**keys, **_known(config, _PLAY)}, "arguments": ["--interactive"]}


def _known(config: Type[LibrarySettings], wishes: Mapping[str, str]) -> Dict[str, str]:
    return {f"extras.{name}": value for name, value in wishes.items() if name in config.names()}


def merged(by_algorithm: Mapping[str, Parts]) -> Dict[str, Any]:
    """Each hyperparameter once, with the types of all algorithms. A default that differs is stated per algorithm."""
    found: Dict[str, Any] = {}
    for parts in by_algorithm.values():
        for name, part in parts.items():
            found[name] = _joined(found[name], part) if name in found else dict(part)
    return found


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> Dict[str, Any]:
    kinds = list(dict.fromkeys([*_kinds(one), *_kinds(other)]))
    joined = {**one, **({"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {})}
    if one.get("default") != other.get("default"):
        joined.pop("default", None)
    return joined


def _kinds(part: Mapping[str, Any]) -> List[str]:
    kinds = part.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)
