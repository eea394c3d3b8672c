"""The main guarantee of the New run sheet: the line that it shows submits what its button submits."""

import shlex

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic.catalog.request import RunOptions
from mosaic.cli.eval import _place_words
from mosaic.cli.eval_policy import evaluation_config
from mosaic.cli.main import build_parser
from mosaic.cli.resume import resume_config
from mosaic.cli.run import build_config, script_part, worker_part
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.present.command_line import command_line
from mosaic.present.run_request import EVALUATE, RESUMED, SCRIPT, TRAIN, RunRequest

RUN = "01JCQZ7Q5V8R2M3N4P5Q6R7S8T"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return StateRoot(tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def home(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_HOME", str(root.path))


def config_of(line):
    """The trainer config that the command submits."""
    words = shlex.split(line)
    assert words[0] == "mosaic"
    args = build_parser().parse(words[1:])
    if words[1] == "resume":
        return resume_config(args)
    if words[1] == "eval":
        _place_words(args)
        return evaluation_config(args)
    return build_config(args, script_part(args) if args.script else worker_part(args))


texts = st.text(max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
names = st.from_regex(r"[a-z_][a-z0-9_-]{0,10}", fullmatch=True)
pairs = st.dictionaries(names, json_values, max_size=4).map(lambda found: tuple(found.items()))
amounts = st.floats(min_value=0, max_value=4096, allow_nan=False).map(lambda value: round(value, 4))
options = st.builds(
    RunOptions,
    name=texts,
    tags=st.lists(texts.filter(bool), max_size=3).map(tuple),
    gpus=st.integers(0, 8),
    gpus_mandatory=st.booleans(),
    cpus=st.none() | amounts,
    memory_mb=st.none() | st.integers(0, 100_000),
    limits=st.fixed_dictionaries({}, optional={"time_s": st.integers(1, 10**7) | amounts, "spin_s": amounts}),
)
any_request = st.one_of(
    st.builds(
        RunRequest, mode=st.just(TRAIN), worker=st.sampled_from(["toy"]), settings=pairs, options=options,
    ),
    st.builds(
        RunRequest, mode=st.just(SCRIPT), worker=st.sampled_from(["", "toy"]), settings=pairs, options=options,
        script=st.sampled_from(["/tmp/my script.sh", "train.py", "-odd.sh"]),
        arguments=st.lists(st.text(max_size=8).filter(lambda text: text != "--"), max_size=4).map(tuple),
    ),
    st.builds(
        RunRequest, mode=st.just(RESUMED), parent=st.just(RUN), settings=pairs, options=options,
        checkpoint=st.sampled_from(["", "/tmp/a b.pt", "~/x.pt", "best"]),
    ),
    st.builds(
        RunRequest, mode=st.just(EVALUATE), parent=st.just(RUN), settings=pairs, options=options,
        checkpoint=st.sampled_from(["", "/tmp/a b.pt", "best"]),
        evaluation=st.fixed_dictionaries(
            {}, optional={"episodes": st.integers(1, 99), "seed": st.integers(0, 99), "video": st.just(True)}
        ),
    ),
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(request_=any_request)
def test_the_line_submits_what_the_form_submits(root, request_):
    assert outcome(lambda: config_of(command_line(request_))) == outcome(lambda: request_.config(root))


def outcome(build):
    """The config, or the sentence of the error: a setting that has no place is refused by both, in the same words."""
    try:
        return build()
    except MosaicError as error:
        return str(error)


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (RunRequest(worker="cleanrl", settings=(("seed", 3),)), "mosaic run cleanrl seed=3"),
        (
            RunRequest(worker="a@jax", settings=(("label", "12"), ("x", "it's")), options=RunOptions(name="my run")),
            """mosaic run a@jax 'label="12"' 'x=it'"'"'s' --name 'my run'""",
        ),
        (
            RunRequest(worker="a", options=RunOptions(gpus=1, gpus_mandatory=True, limits={"time_s": 5400.0})),
            "mosaic run a --gpus 1 --gpus-mandatory --time-limit 1h30m",
        ),
        (
            RunRequest(SCRIPT, "cleanrl", (("lr", 0.1),), script="quick", arguments=("--seed", "1")),
            "mosaic run --script quick --env-of cleanrl --set lr=0.1 -- --seed 1",
        ),
        (RunRequest(RESUMED, parent=RUN, settings=(("steps", 9),)), f"mosaic resume {RUN} steps=9"),
        (
            RunRequest(EVALUATE, parent=RUN, checkpoint="best", evaluation={"episodes": 5, "video": True}),
            f"mosaic eval {RUN} --best --episodes 5 --video",
        ),
    ],
)
def test_the_line_is_what_a_person_would_type(request_, line):
    assert command_line(request_) == line


def test_another_machine_is_named():
    assert command_line(RunRequest(worker="toy"), "me@box") == "mosaic --host me@box run toy"
