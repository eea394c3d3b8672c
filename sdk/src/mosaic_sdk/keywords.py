"""The `x-mosaic-*` keywords of a worker's parameter schema. All are optional; docs/howto/new-worker.md lists them.

JSON Schema says which values a setting takes. These keywords add what MOSAIC needs to know beyond that: which value
needs which variant, how a run is resumed or evaluated, what the conformance lab runs.
"""

from typing import Dict, NamedTuple

VARIANTS = "x-mosaic-variants"
UNAVAILABLE = "x-mosaic-unavailable"
OPEN_WITH = "x-mosaic-open-with"
ALGORITHMS = "x-mosaic-algorithms"
SAME_AS = "x-mosaic-same-as"
INHERITS_WITH = "x-mosaic-inherits-with"
EXAMPLES = "x-mosaic-examples"
CHECKPOINT = "x-mosaic-checkpoint"
RESUME = "x-mosaic-resume"
EVAL = "x-mosaic-eval"
PARTS = "x-mosaic-parts"
INTERACTIVE = "x-mosaic-interactive"
EXPORT = "x-mosaic-export"
SCRIPTS = "x-mosaic-scripts"
LAB = "x-mosaic-lab"

# Set by MOSAIC on a schema it has read, never by a worker: who has these keys, when it is not simply the worker.
OWNER = "x-mosaic-owner"


class Keyword(NamedTuple):
    """Where a keyword is used and what it means, in Markdown."""

    where: str
    meaning: str


SCHEMA, PROPERTY = "the schema", "a property"

KEYWORDS: Dict[str, Keyword] = {
    VARIANTS: Keyword(
        SCHEMA,
        '`{"algo": {"ppo_jax": "jax"}}`: this value needs that variant. A submit that names no variant gets it; if it '
        "is not installed, the submit is refused with the command that installs it",
    ),
    UNAVAILABLE: Keyword(
        PROPERTY,
        '`{"rainbow": "needs release 2, and release 1 is installed"}`: values that exist but cannot be used here. They '
        "are refused at submit with the reason; `mosaic worker install` and `describe` list them. Compute them from "
        "what is installed when the schema is requested",
    ),
    OPEN_WITH: Keyword(
        PROPERTY,
        '`"extras.checkout"`: when that key is set, `enum`, `const`, `additionalProperties` and '
        f"`{UNAVAILABLE}` of this property are not applied",
    ),
    ALGORITHMS: Keyword(
        "`extras.algo_params`",
        '`{"dqn": {"buffer_size": {…}}}`: the properties for each value of `algo`. A config that names an algorithm '
        "is checked against that algorithm's own",
    ),
    SAME_AS: Keyword(
        PROPERTY,
        '`"steps"`: another name of that setting, in the same place (`aliases=("total_timesteps",)` in the class). '
        "The worker receives the first name; two different values are refused",
    ),
    INHERITS_WITH: Keyword(
        SCHEMA,
        '`["extras.policy_path"]`: when one of these keys is set, the worker takes what the config leaves out from '
        "there, so no defaults are recorded",
    ),
    EXAMPLES: Keyword(
        SCHEMA,
        '`["env_id=CartPole-v1 lr=1e-3"]`: settings as typed on the command line, shown by `mosaic run acme --help`',
    ),
    CHECKPOINT: Keyword(
        PROPERTY,
        "`true`: this setting is a checkpoint (`checkpoint=True` in the class). It takes a run (id, prefix, name, "
        "`last`, `RUN:best`) as well as a path; the worker always receives an absolute path that exists, and the run "
        "is recorded as the parent",
    ),
    RESUME: Keyword(
        SCHEMA,
        '`{"extras.mode": "resume_training", "extras.policy_path": "{checkpoint}"}`: the settings that make a run '
        "continue from a checkpoint, for `mosaic resume`. See section 5",
    ),
    EVAL: Keyword(
        SCHEMA,
        "the same for `mosaic eval`, which also fills in `{episodes}`, `{seed}`, `{video}` and `{parent}`. See "
        "section 5",
    ),
    INTERACTIVE: Keyword(
        SCHEMA,
        '`{"settings": {"extras.mode": "interactive", "extras.policy_path": "{checkpoint}"}, "arguments": '
        '["--interactive"]}`: how the worker is started as an operator, for `mosaic eval --operator`. See section 5',
    ),
    PARTS: Keyword(
        SCHEMA,
        '`["env", "replay"]`: the parts of a run that may be runs of their own, on other machines: `mosaic run acme '
        "--part env:2@slurm`. See section 5",
    ),
    EXPORT: Keyword(
        SCHEMA,
        '`"acme_worker.export"`: the module that `mosaic model export` runs in the worker\'s environment, with a '
        "checkpoint and a folder (`mosaic_sdk.export`). Without it a checkpoint is copied as it is",
    ),
    SCRIPTS: Keyword(
        SCHEMA,
        '`{"quick": {"path": …, "description": …, "phases": 2, "total_timesteps": 50000}}`: scripts that come with the '
        "worker, for `mosaic run --script quick --env-of acme --set key=value`",
    ),
    LAB: Keyword(
        SCHEMA,
        '`{"short": {…}, "long": {…}, "fails": {…}}`: configs that the conformance lab runs. See section 6',
    ),
}
