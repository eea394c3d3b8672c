"""The run after the check against the schema: with its settings as the worker expects them."""

import pytest

from mosaic.catalog.inspector import Verdict
from mosaic.model.errors import BadConfig
from mosaic.model.run import Settings
from mosaic.submit.validate import settle, validate


def config(**settings):
    return {"metadata": {"worker": {"module": "toy_worker.cli", "config": settings}}}


def test_moved_settings_are_kept_in_the_config_and_checked_again(make_context):
    run = validate(config(mode="policy_eval", steps=2e3), make_context())
    moved = {"steps": 2000, "extras": {"mode": "policy_eval", "tensorboard_dir": "tb"}}
    bad = {"steps": 2000, "extras": {"tensorboard_dir": "/tmp"}}

    whole = Verdict("", {"steps": 2000})

    settled = settle(run, Verdict("", moved, Settings({"steps": 2000})), make_context(config_hash="h"))

    assert (run.area, settled.area) == ("runs", "evals")
    wholly = settle(validate(config(steps=2e3), make_context()), whole, make_context())
    assert repr(wholly.worker.config["steps"]) == "2000"
    assert settled.raw["metadata"]["worker"]["config"] == moved == settled.worker.config
    assert (settled.run_id, settled.config_hash) == (run.run_id, "h")
    with pytest.raises(BadConfig, match="outside the run's folder"):
        settle(run, Verdict("", bad), make_context())


def test_the_settings_in_force_give_the_total_steps_and_contain_no_secret(make_context):
    values = {"total_timesteps": 500_000, "extras.api_key": "hunter2"}

    run = settle(validate(config(), make_context()), Verdict("", {}, Settings(values, "why")), make_context())

    assert run.total_steps == 500_000
    assert run.settings == Settings({"total_timesteps": 500_000, "extras.api_key": "***"}, "why")


def test_a_path_is_resolved_in_the_run_and_not_in_the_verdict(make_context, tmp_path):
    (tmp_path / "real.pt").touch()
    (tmp_path / "link.pt").symlink_to("real.pt")
    moved = {"extras": {"policy_path": str(tmp_path / "link.pt")}}

    settled = settle(validate(config(), make_context()), Verdict("", moved), make_context())

    assert settled.worker.config["extras"]["policy_path"] == str(tmp_path / "real.pt")
    assert settled.raw["metadata"]["worker"]["config"] == settled.worker.config
    assert moved == {"extras": {"policy_path": str(tmp_path / "link.pt")}}
