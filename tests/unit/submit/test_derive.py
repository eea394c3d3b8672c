"""A run derived from another: what it inherits, what the schema adds, what the user changes."""

import pytest

from mosaic.model.errors import BadConfig
from mosaic.submit.checkpoints import Checkpoint
from mosaic.submit.derive import Parent, derive, name_of, read_evaluation, refuse_finished, schema_settings
from mosaic.submit.section import Section

SCHEMA = {
    "properties": {
        "total_timesteps": {"type": "integer", "default": 500},
        "seed": {"type": "integer"},
        "extras": {
            "properties": {
                "mode": {"type": "string"},
                "policy_path": {"type": "string"},
                "algo_params": {"properties": {"learning_rate": {"type": "number"}}},
            }
        },
    },
    "x-mosaic-resume": {"extras.mode": "resume_training", "extras.policy_path": "{checkpoint}"},
    "x-mosaic-eval": {
        "extras.mode": "policy_eval",
        "extras.policy_path": "{checkpoint}",
        "seed": "{seed}",
        "extras.eval_episodes": "{episodes}",
        "extras.cuda": "{parent}",
    },
}
VALUES = {"checkpoint": "/c.pt"}


def parent(config=None, schema=SCHEMA, **changes):
    worker = {"module": "acme_worker.cli", "variant": "jax", "worker_id": "w1", "config": config or {}}
    document = {"metadata": {"worker": worker, "tags": ["t"]}, "payload": {"limits": {"time_s": 60}}}
    return Parent("01P", "crawler", "acme", document, schema, **changes)


def asked(**config):
    return {"metadata": {"parent_run_id": "01P", "relation": "resume", "worker": {"config": config}}}


def test_a_resumed_run_takes_commands_like_its_parent():
    before = parent()
    before.document["metadata"]["worker"]["commands"] = True

    whole = derive(asked(), before, "resume", VALUES)

    assert whole["metadata"]["worker"]["commands"] is True


def config_of(document):
    return document["metadata"]["worker"]["config"]


def test_a_resumed_run_has_its_parents_settings_the_schemas_and_the_users():
    before = {"run_id": "01P", "total_timesteps": 100, "seed": 1, "extras": {"cuda": True, "mode": "train"}}

    whole = derive(asked(total_timesteps=300, learning_rate=1e-4), parent(before), "resume", VALUES)

    extras = {"cuda": True, "mode": "resume_training", "policy_path": "/c.pt", "algo_params": {"learning_rate": 1e-4}}
    assert config_of(whole) == {"total_timesteps": 300, "seed": 1, "extras": extras}
    assert whole["metadata"]["worker"]["module"] == "acme_worker.cli"
    assert whole["metadata"]["worker"]["variant"] == "jax"
    assert whole["metadata"]["tags"] == ["t"]
    assert whole["payload"] == {"limits": {"time_s": 60}}


def test_fields_that_only_an_older_mosaic_accepted_are_not_inherited():
    before = parent({"seed": 1})
    before.document["metadata"]["worker"]["color"] = "red"
    before.document["payload"]["resources"] = {"disk_gb": 3, "gpus": {"requested": 1, "kind": "A100"}}

    whole = derive(asked(total_timesteps=600), before, "resume", VALUES)

    assert "color" not in whole["metadata"]["worker"]
    assert whole["payload"] == {"resources": {"gpus": {"requested": 1}}, "limits": {"time_s": 60}}


def test_an_evaluation_inherits_only_what_the_schema_names():
    before = {"total_timesteps": 100, "seed": 1, "extras": {"cuda": True, "track_wandb": True}}

    whole = derive(asked(), parent(before), "eval", {**VALUES, "seed": 1000000})

    assert config_of(whole) == {
        "seed": 1000000,
        "extras": {"mode": "policy_eval", "policy_path": "/c.pt", "cuda": True},
    }
    assert whole["payload"] == {}


def test_another_name_of_the_total_replaces_the_parents():
    whole = derive(asked(steps=900), parent({"total_timesteps": 100}), "resume", VALUES)

    assert config_of(whole)["steps"] == 900
    assert "total_timesteps" not in config_of(whole)


def test_a_second_checkpoint_is_refused():
    with pytest.raises(BadConfig, match="Choose another with --checkpoint"):
        derive(asked(policy_path="/other.pt"), parent(), "resume", VALUES)


@pytest.mark.parametrize(("relation", "verb"), [("resume", "resumed"), ("eval", "evaluated")])
def test_a_worker_without_the_keyword_is_refused_with_a_sentence(relation, verb):
    with pytest.raises(BadConfig, match=f"Worker 'acme' does not say how its runs are {verb}.*new-worker.md"):
        schema_settings(parent(schema={}), relation)


def test_an_option_that_the_worker_does_not_support_is_refused():
    with pytest.raises(BadConfig, match="'acme' has no setting for video recording"):
        read_evaluation(Section({"evaluation": {"video": True}}, "metadata"), parent())


@pytest.mark.parametrize("wrong", [{"episodes": 0}, {"episodes": "5"}, {"seed": -1}, {"vidoe": True}])
def test_an_invalid_evaluation_is_refused(wrong):
    with pytest.raises(BadConfig, match=r"metadata\.evaluation\."):
        read_evaluation(Section({"evaluation": wrong}, "metadata"), parent())


def test_evaluations_have_seeds_of_their_own_unless_one_is_given():
    assert read_evaluation(Section({}, "metadata"), parent()) == {"seed": 1000000}
    assert read_evaluation(Section({"evaluation": {"seed": 0}}, "metadata"), parent()) == {"seed": 0}


@pytest.mark.parametrize(
    ("config", "before", "step", "is_finished"),
    [
        ({"total_timesteps": 100}, 100, 100, True),
        ({"total_timesteps": 100}, 100, 96, True),  # it counts in batches: the last four steps are never trained
        ({"total_timesteps": 50}, 100, 60, False),  # killed, and resumed with fewer steps than it had done
        ({}, 500, 500, True),  # of the default
        ({}, None, 500, False),
    ],
)
def test_a_training_with_nothing_left_is_refused_with_the_setting_to_raise(config, before, step, is_finished):
    with pytest.raises(BadConfig, match=r"nothing is left to train.*mosaic resume 01P total_timesteps=\d+"):
        refuse_finished(parent(config, is_finished=is_finished), before, Checkpoint("/c", step), config)


@pytest.mark.parametrize(
    ("config", "before", "step", "is_finished"),
    [
        ({"total_timesteps": 100}, 100, 60, False),
        ({"total_timesteps": 200}, 100, 100, True),
        ({"total_timesteps": 100}, 100, None, False),
    ],
)
def test_a_training_with_steps_left_is_not(config, before, step, is_finished):
    refuse_finished(parent(config, is_finished=is_finished), before, Checkpoint("/c", step), config)


def test_a_total_too_large_for_a_counter_is_ignored():
    before = parent({"total_timesteps": float("inf")})

    refuse_finished(before, None, Checkpoint("/c", 7), before.config)


def test_the_name_of_a_run_says_what_it_was_derived_from():
    assert name_of("crawler", "resume") == "crawler (resumed)"
    assert name_of("crawler (resumed)", "resume") == "crawler (resumed 2)"
    assert name_of("crawler (resumed 2)", "resume") == "crawler (resumed 3)"
    assert name_of("crawler", "eval") == "eval of crawler"
    assert len(name_of("x" * 120, "resume")) == len(name_of("x" * 120, "eval")) == 120
