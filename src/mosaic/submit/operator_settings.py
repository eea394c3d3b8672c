"""The settings of an operator's worker: what its schema needs for interactive mode, the user's settings on top."""

from collections.abc import Mapping
from typing import Any

from mosaic.catalog.interactive import ENV_KWARGS, ENV_WRAPPERS, Interactive
from mosaic.catalog.placement import put_in_place
from mosaic.catalog.schema import Schema
from mosaic.submit.derive import filled, merged, refuse_second_checkpoint
from mosaic.submit.operators import Asked
from mosaic.submit.policy import Policy

_ADVICE = "set owns_env: false for this operator: then it only selects actions"


def operator_config(
    asked: Asked, way: Interactive, schema: Schema, policy: Policy, checkpoint: str = "", parent: Schema | None = None
) -> dict[str, Any]:
    """The config of the operator's worker, or BadConfig if the policy is one of another environment or algorithm.

    `parent`: the settings of the run that saved the checkpoint.
    """
    own = put_in_place(asked.settings, schema, asked.settings_path)
    if asked.run:
        refuse_second_checkpoint(way.settings, own, asked.settings_path, "Choose it with `checkpoint` of the operator.")
    _refuse_other_policy(asked, own, policy)
    values = {
        "checkpoint": checkpoint or None,
        "env_id": _env_id(asked, way, policy) or None,
        "algo": policy.algo or None,
        "env_kwargs": dict(asked.env_kwargs) or None,
        "env_wrappers": list(asked.env_wrappers) or None,
    }
    return merged(filled(way.settings, parent or {}, values), own)


def _env_id(asked: Asked, way: Interactive, policy: Policy) -> str:
    """The environment that the worker creates, by its own name for it."""
    if not asked.env_id:
        return policy.env_id  # only for its spaces: whether they fit is checked when the evaluation starts
    _refuse_unsupported(asked, way)
    known = policy.env_ids or way.only_envs
    for env_id in known:
        if way.is_same(asked.env_id, env_id):
            return env_id
    if not known:
        return asked.env_id
    who = "the policy was trained on" if policy.env_ids else "the worker has only the environment"
    raise asked.section.bad(
        "env.id", f"{who} {' and '.join(known)}, and the environment to play is {asked.env_id}. {_remedy(policy)}"
    )


def _remedy(policy: Policy) -> str:
    choice = f"Choose another run, play {policy.env_id}, or {_ADVICE}" if policy.env_ids else _ADVICE.capitalize()
    return f"{choice}."


def _refuse_unsupported(asked: Asked, way: Interactive) -> None:
    for key, given, placeholder in (
        ("env.kwargs", asked.env_kwargs, ENV_KWARGS),
        ("env.wrappers", asked.env_wrappers, ENV_WRAPPERS),
    ):
        if given and not way.takes(placeholder):
            raise asked.section.bad(key, f"the worker cannot pass them to the environment that it creates; {_ADVICE}.")


def _refuse_other_policy(asked: Asked, own: Mapping[str, Any], policy: Policy) -> None:
    known = {"algo": ("algorithm", (policy.algo,)), "env_id": ("environment", policy.env_ids)}
    known["env"] = known["env_id"]
    for name, (label, found) in known.items():
        given = own.get(name)
        if given and any(found) and given not in found:
            raise asked.section.bad(
                f"settings.{name}", f"the policy's {label} is {' or '.join(found)}, not {given}. Remove this setting."
            )
