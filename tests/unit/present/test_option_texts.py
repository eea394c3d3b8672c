"""What MOSAIC does with a run, as typed; and the defaults of a run that continues another one."""

import pytest

from mosaic.catalog.request import RunOptions, trainer_config
from mosaic.present.forms import Form
from mosaic.present.inherited import inherited
from mosaic.present.option_texts import OptionTexts, describe_gpus
from mosaic.present.worker_choice import WorkerEntry, first_choice, takes, why_not

SCHEMA = {
    "required": ["env_id"],
    "properties": {
        "algo": {"enum": ["a", "b"], "default": "a"},
        "env_id": {"type": "string"},
        "extras": {
            "properties": {
                "algo_params": {
                    "properties": {},
                    "x-mosaic-algorithms": {"a": {}, "b": {"lr": {"type": "number", "default": 0.1}}},
                }
            }
        },
    },
}


def test_texts_become_options():
    texts = OptionTexts("my run", "a, b,", True, True, "0.5", "4G", "1h30m")

    assert texts.options() == RunOptions(
        name="my run",
        tags=("a", "b"),
        gpus=1,
        gpus_mandatory=True,
        cpus=0.5,
        memory_mb=4096,
        limits={"time_s": 5400.0},
    )


def test_options_of_a_run_are_copied():
    texts = OptionTexts("my run", "a, b", True, True, "0.5", "4096M", "1h30m", gpus=2)

    assert OptionTexts.of(trainer_config({}, texts.options())) == texts


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("cpus", "many", "'many' is not a valid number of CPUs, such as 4 or 0.5."),
        ("memory", "4", "'4' is not a valid amount of memory, such as 512M or 4G."),
        ("time_limit", "soon", "'soon' is not a valid duration. Write it as 90s, 45m, 2h, 1h30m or 30d."),
    ],
)
def test_an_invalid_option_is_explained(option, text, problem):
    assert OptionTexts(**{option: text}).problems() == {option: problem}


def test_a_run_that_would_wait_forever_is_refused():
    waiting = OptionTexts(gpu=True, waits=True)

    assert waiting.problems(0) == {"gpu": "This machine has no GPU, so the run would wait forever."}
    assert waiting.problems(1) == {}
    assert waiting.problems(None) == {}
    assert OptionTexts(gpu=True).problems(0) == {}


def test_gpus_are_described():
    assert describe_gpus([("H200", ""), ("H200", "run 01")]) == "H200: 1 of 2 free."
    assert describe_gpus([]) == "This machine has no GPU: the run would start without one."


def test_a_resumed_run_has_the_settings_of_its_parent():
    form = Form(inherited(SCHEMA, {"algo": "b", "env_id": "Pong", "extras": {"algo_params": {"lr": 0.7}}}))

    assert (form.text("algo"), form.text("env_id"), form.text("lr")) == ("b", "Pong", "0.7")
    assert form.settings() == []
    assert form.problems() == {}
    form.set("lr", "0.1")
    assert form.settings() == [("lr", 0.1)]


def test_a_mode_that_is_not_offered_has_a_reason():
    schema = {"x-mosaic-eval": {"seed": "{seed}"}}

    assert why_not("evaluate", schema, "acme") == ""
    assert why_not("train", {}, "acme") == ""
    assert "acme does not say how its runs are resumed" in why_not("resume", schema, "acme")
    assert takes(schema, "seed")
    assert not takes(schema, "video")


def test_the_worker_that_was_installed_on_purpose_comes_first():
    entries = [WorkerEntry("acme", True, "broken"), WorkerEntry("toy", True, is_own=True), WorkerEntry("zoo", True)]

    assert first_choice(entries) == "zoo"
    assert first_choice(entries, "toy") == "toy"
    assert first_choice([]) == ""
