"""Lines of programs that were not written for MOSAIC."""

import json

import pytest

from mosaic.model.run import UNNUMBERED
from mosaic.tail import foreign
from mosaic.tail.parse import Parser, Request

RUN_ID = "01HZY0000000000000000000AA"


def parse(text):
    request = Request(run_id=RUN_ID)
    Parser(RUN_ID).parse(text.encode(), 0, 1, request)
    return request


def only_event(line):
    request = parse(line + "\n")
    assert (len(request.events), len(request.texts), len(request.rejects)) == (1, 0, 0), request
    assert not request.lookalikes.count
    return request.events[0]


@pytest.mark.parametrize("kind", ["episode", "episode_end", "episode_done", "EPISODE_END"])
@pytest.mark.parametrize("name", ["return", "reward", "episode_return", "total_reward"])
@pytest.mark.parametrize("discriminator", ["type", "event", "event_type"])
def test_an_episode_under_other_names_is_an_episode(kind, name, discriminator):
    line = {discriminator: kind, "episode": 3, name: 12.5, "length": 40, "lr": 0.1}
    if name == "total_reward" and kind == "episode":
        line = {discriminator: kind, "episode_index": 3, name: 12.5, "steps": 40, "lr": 0.1}

    episode = only_event(json.dumps(line)).episode

    assert (episode.episode_index, episode.total_reward, episode.steps) == (3, 12.5, 40)
    assert json.loads(episode.extra) == {"lr": 0.1}


def test_an_episode_without_index_or_length_is_left_for_the_store_to_number():
    episode = only_event('{"type": "episode_end", "return": 1}').episode

    assert (episode.episode_index, episode.steps) == (UNNUMBERED, 0)


@pytest.mark.parametrize("name", ["step", "global_step", "timestep"])
def test_a_step_may_call_its_index_otherwise(name):
    assert only_event(f'{{"type": "step", "{name}": 7, "reward": 1}}').step.step_index == 7
    assert only_event(f'{{"event": "step", "{name}": 7}}').step.step_index == 7


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "metrics", "metrics": {"loss": 0.5, "kl": 2}, "step": 9}',
        '{"type": "metric", "metric": {"loss": 0.5, "kl": 2}, "global_step": 9}',
        '{"type": "metrics", "loss": 0.5, "kl": 2, "step": 9}',
        '{"event": "metrics", "data": {"loss": 0.5, "kl": 2}, "timestep": 9}',
        '{"loss": 0.5, "kl": 2, "step": 9}',
        '{"step": 9, "loss": 0.5, "kl": 2, "timestamp": "2026-01-01"}',
    ],
)
def test_metrics_are_grouped_flat_or_bare(line):
    metric = only_event(line).metric if "timestamp" not in line else None
    if metric is None:  # a date is not a number, but it says when, not what
        metric = parse(line + "\n").events[0].metric

    assert (dict(zip(metric.names, metric.values, strict=True)), metric.step) == ({"loss": 0.5, "kl": 2.0}, 9)


def test_a_metric_may_call_its_name_otherwise():
    metric = only_event('{"type": "scalar", "tag": "charts/SPS", "value": 3, "step": 1}').metric

    assert (list(metric.names), list(metric.values)) == (["charts/SPS"], [3.0])


def test_a_lifecycle_word_may_stand_in_type():
    lifecycle = only_event('{"type": "run_started", "payload": {"a": 1}}').lifecycle

    assert (lifecycle.event, lifecycle.payload) == ("run_started", b'{"a": 1}')


@pytest.mark.parametrize(
    "prefix", ["INFO:root:", "2026-01-31 12:00:00,123 INFO acme: ", "[12:00:00] ", "DEBUG - ", "2026-01-31T12:00:00Z "]
)
def test_an_object_behind_a_logging_prefix_counts(prefix):
    episode = only_event(f'{prefix}{{"type": "episode", "episode_index": 1, "total_reward": 2, "steps": 3}}').episode

    assert (episode.episode_index, json.loads(episode.extra)) == (1, {"log_prefix": prefix})


@pytest.mark.parametrize(
    "line",
    [
        'sending {"type": "episode", "episode_index": 1, "total_reward": 2, "steps": 3}',  # not a logging prefix
        'INFO {"loss": 0.5, "step": 9}',  # nothing says that it is telemetry
        'INFO {"type": "episode"}',
        '{"type": "config", "lr": 0.1}',
        '{"lr": 0.1, "gamma": 0.9}',
        "{} and more",
        '{"type": ["episode"]}',
    ],
)
def test_what_is_not_certain_stays_text_without_a_hint(line):
    request = parse(line + "\n")

    assert (len(request.events), len(request.rejects), request.lookalikes.count) == (0, 0, 0)
    assert b"".join(text.text for text in request.texts).decode() == line + "\n"


@pytest.mark.parametrize(
    ("lines", "count", "why"),
    [
        ('{"type": "episode_end"}\n{"type": "episode_end", "loss": "x"}\n', 2, foreign.NO_KIND),
        ('{"event": "training_update", "loss": 0.1}\n', 1, foreign.NO_KIND),
        ('{"loss": 0.1, "name": "x"}\n', 1, foreign.NO_KIND),
        ('{\n  "type": "episode",\n  "return": 3\n}\n', 1, foreign.NOT_ONE_LINE),
        ('{\n  "loss": 0.5,\n  "step": 3\n}\n', 1, foreign.NOT_ONE_LINE),
        ('{\n  "steps": 500,\n  "step_size": 3\n}\n', 0, ""),
        ("{'loss': 0.1, 'step': 3}\n", 1, foreign.NOT_JSON),
        ('{"loss": 0.1, "step": 3} {"loss": 0.2, "step": 4}\n', 1, foreign.NOT_JSON),
    ],
)
def test_a_line_that_looks_like_telemetry_is_text_and_counted(lines, count, why):
    request = parse(lines)

    assert not request.events
    assert b"".join(text.text for text in request.texts).decode() == lines
    assert (request.lookalikes.count, request.lookalikes.why) == (count, why)
    assert bytes(request.lookalikes.first).decode() in lines


def test_telemetry_on_stderr_is_counted_and_never_parsed():
    request = Request(run_id=RUN_ID)
    line = b'{"type": "episode", "episode_index": 1, "total_reward": 2, "steps": 3}'

    Parser(RUN_ID).look(
        b"warming up {}\n"
        + line
        + b'\nINFO {"type": "run_started"}\n{"loss": 1, "step": 2}\n'
        + b'INFO {"loss": 1, "step": 2}\n{"port": 80}\n',  # nor are these telemetry on stdout
        request,
    )

    assert (request.lookalikes.count, request.lookalikes.why) == (3, foreign.ON_STDERR)
    assert bytes(request.lookalikes.first) == line
    assert not request.events


def test_a_bad_field_of_a_foreign_line_leaves_nothing_behind():
    request = parse('{"type": "episode_end", "return": 1, "terminated": "perhaps"}\n')

    assert (len(request.events), len(request.rejects)) == (0, 0)
