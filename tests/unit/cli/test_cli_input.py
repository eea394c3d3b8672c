"""What users type: durations, key=value, states and options."""

import argparse

import pytest

from mosaic.cli import main as command
from mosaic.cli.durations import parse_duration
from mosaic.cli.run import build_config, worker_part
from mosaic.cli.runs import parse_states
from mosaic.cli.settings import as_typed, parse_settings
from mosaic.cli.verb import BadUsage
from mosaic.model.states import LIVE_STATES, RunState
from mosaic.present.durations import format_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("45s", 45),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("30d", 2592000),
        ("5min", 300),
        ("1w", 604800),
    ],
)
def test_a_duration_is_read_as_users_write_it(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "2x", "h", "1h foo", "-5"])
def test_an_invalid_duration_is_refused_with_examples(text):
    with pytest.raises(argparse.ArgumentTypeError, match="1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (200, "3m20s"), (7500, "2h05m"), (385200, "4d11h"), (-3, "0s")]
)
def test_a_duration_is_shown_in_two_units(seconds, text):
    assert format_duration(seconds) == text


def test_settings_are_json_where_they_can_be_and_text_otherwise():
    words = ["steps=200", "flag=true", "xs=[1,2]", "name=CartPole-v1", "empty=", "eq=a=b", "none=null"]

    assert parse_settings(words) == {
        "steps": 200,
        "flag": True,
        "xs": [1, 2],
        "name": "CartPole-v1",
        "empty": "",
        "eq": "a=b",
        "none": None,
    }


def test_dots_nest_and_env_is_short_for_env_id():
    settings = parse_settings(["extras.lr=3e-4", "extras.net.layers=2", "env=Pong"])

    assert settings == {"extras": {"lr": 3e-4, "net": {"layers": 2}}, "env_id": "Pong"}


@pytest.mark.parametrize("words", [["steps"], ["=5"], ["a..b=1"], ["a=1", "a=2"], ["a=1", "a.b=2"], ["a.b=2", "a=1"]])
def test_invalid_settings_are_refused(words):
    with pytest.raises(BadUsage):
        parse_settings(words)


def test_states_may_be_named_in_any_case_and_in_groups():
    assert parse_states("faulted,READY") == (RunState.FAULTED, RunState.READY)
    assert parse_states("live") == LIVE_STATES
    with pytest.raises(argparse.ArgumentTypeError, match="EXECUTING"):
        parse_states("busy")


def parse(*words):
    return command.build_parser().parse_args(words)


def test_the_arguments_of_run_become_a_trainer_config():
    args = parse(
        *("--host", "me@box", "run", "cleanrl@jax", "env=Pong", "--name", "p", "--tag", "a", "--tag", "b"),
        *("--gpus", "2", "--gpus-mandatory", "--time-limit", "2h"),
        *("--cpus", "0.5", "--memory", "4G", "--spin-limit", "0"),
    )

    config = build_config(args, worker_part(args))

    assert config == {
        "metadata": {
            "run_name": "p",
            "tags": ["a", "b"],
            "worker": {
                **{"module": "cleanrl_worker.cli", "name": "cleanrl", "variant": "jax"},
                "config": {"env_id": "Pong"},
            },
        },
        "payload": {
            "resources": {"gpus": {"requested": 2, "mandatory": True}, "cpus": 0.5, "memory_mb": 4096},
            "limits": {"time_s": 7200.0, "spin_s": 0.0},
        },
    }


def test_a_run_without_options_requests_nothing():
    args = parse("--host", "me@box", "run", "toy")

    assert build_config(args, worker_part(args)) == {
        "metadata": {"worker": {"module": "toy_worker.cli", "name": "toy", "config": {}}},
        "payload": {},
    }


@pytest.mark.parametrize("words", [("-v", "runs"), ("runs", "-v")])
def test_common_options_may_be_before_or_after_the_verb(words):
    assert parse(*words).verbose is True


@pytest.mark.parametrize(
    "words",
    [
        *("run toy steps=3", "submit /dev/null", "runs", "show 01M", "watch", "frames 01M", "logs 01M", "cancel 01M"),
        *("export 01M", "curve 01M", "du", "rm 01M", "gc", "doctor", "daemon start", "daemon stop", "daemon status"),
        "registry rebuild",
        *("worker list", "worker describe toy", "worker install toy", "worker remove toy", "worker test toy"),
    ],
)
def test_every_verb_refuses_the_state_folder_of_another_user(words, foreign_folder, monkeypatch, capsys):
    monkeypatch.setenv("MOSAIC_HOME", str(foreign_folder))

    code = command.main(words.split())

    output = capsys.readouterr().err
    assert (code, output.count("\n")) == (1, 1)
    assert f"mosaic: The state folder {foreign_folder} belongs to" in output


def test_a_host_before_the_verb_counts():
    assert parse("--host", "me@box", "runs").host == "me@box"


@pytest.mark.parametrize(
    "verb",
    [
        *("frames", "registry", "registry rebuild"),
        *("run", "submit", "runs", "show", "watch", "logs", "cancel", "export", "curve", "du", "rm", "gc", "doctor"),
        *("daemon", "daemon start", "daemon stop", "daemon status", "worker", "worker list", "worker describe"),
    ],
)
def test_the_help_of_every_verb_has_examples(verb, capsys):
    with pytest.raises(SystemExit) as left:
        command.main([*verb.split(), "--help"])

    assert left.value.code == 0
    assert "examples:\n  mosaic " in capsys.readouterr().out


def test_mosaic_alone_gives_an_overview(capsys):
    assert command.main([]) == 0

    assert "mosaic run toy" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", ["runs --state busy", "runs --limit -1", "run toy --time-limit soon", "gc --older-than x"]
)
def test_an_invalid_value_is_a_usage_error(words):
    with pytest.raises(SystemExit) as left:
        command.main(words.split())

    assert left.value.code == 2


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("metadata.worker.config.learning_rat: no such key", "learning_rat: no such key"),
        ("metadata.worker.script: '/x' does not exist.", "--script: '/x' does not exist."),
        ("payload.resources.cpus: 99 are requested", "--cpus: 99 are requested"),
        ("metadata.run_name: it is too long", "--name: it is too long"),
        ("payload.on: there is no cluster 'x'", "--on: there is no cluster 'x'"),
        ("payload.parts: 'toy' has no part 'env'", "--part: 'toy' has no part 'env'"),
        ("experiment.axes.agents: 1 is given twice.", "--sweep agents: 1 is given twice."),
        ("experiment.base.steps: varies", "steps: varies"),
        ("payload.other: unknown field", "payload.other: unknown field"),
    ],
)
def test_errors_name_options_as_they_are_typed(message, expected):
    assert as_typed(message) == expected


def test_an_option_written_as_a_setting_is_named_as_an_option():
    message = "metadata.worker.config.time_limit: the worker has no such setting. Did you mean 'rate'?"

    assert as_typed(message) == (
        "time_limit: the worker has no such setting. If you mean the option, use --time-limit."
    )


def test_every_verb_is_found_in_the_module_that_has_it():
    for module, verbs in command.MODULES.items():
        grammar = command.build_parser([module])
        (group,) = (action for action in grammar._actions if isinstance(action, argparse._SubParsersAction))

        assert tuple(group.choices) == verbs


def test_only_the_module_of_the_verb_is_imported():
    assert command._modules_of(["-v", "--host", "run", "show", "x"]) == ["show"]
    assert command._modules_of(["gc", "--yes"]) == ["garbage"]
    assert command._modules_of(["shwo"]) == tuple(command.MODULES)
    assert command._modules_of([]) == tuple(command.MODULES)


def test_an_optional_argument_may_follow_an_option():
    args = command.build_parser().parse(["curve", "last", "--joined", "episode/return"])

    assert (args.run, args.name, args.joined) == ("last", "episode/return", True)
