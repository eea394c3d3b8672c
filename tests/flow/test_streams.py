"""Live streams, curves and logs of real runs."""

import itertools
from pathlib import Path

from mosaic.model.states import RunState

S = RunState


def test_since_seq_resumes_without_gap_or_duplicate(lab):
    run = lab.submit(steps=6_000, rate=6_000)

    first = [event.seq for event in itertools.islice(lab.client.stream_events(run.run_id), 500)]
    rest = [event.seq for event in lab.client.stream_events(run.run_id, since_seq=first[-1])]

    assert first + rest == list(range(1, lab.wait_until_over(run).summary.events + 1))


def test_a_range_can_be_fetched_again(lab):
    run = lab.submit(steps=300)
    lab.wait_until_over(run)

    assert [e.seq for e in lab.client.stream_events(run.run_id, since_seq=99, until_seq=110)] == list(range(100, 111))


def test_tail_gives_the_newest_events(lab):
    run = lab.submit(steps=5_000, metrics_every=0)
    total = lab.wait_until_over(run).summary.events

    assert [e.seq for e in lab.client.stream_events(run.run_id, tail=100)] == list(range(total - 99, total + 1))
    assert [e.step_index for e in lab.client.stream_steps(run.run_id, tail=3)] == [4_997, 4_998, 4_999]


def test_many_subscribers_see_the_same(lab):
    run = lab.submit(steps=1_000, rate=2_000)
    streams = [lab.client.stream_steps(run.run_id) for _ in range(10)]

    seen = [[event.step_index for event in stream] for stream in streams]

    assert all(steps == list(range(1_000)) for steps in seen)


def test_a_curve_over_many_steps_is_short_and_correct(lab):
    run = lab.submit(steps=30_000, metrics_every=1, episode_length=1_000_000)
    lab.wait_until_over(run)

    curve = lab.client.query_curve(run.run_id, "toy/loss", points=200)

    assert 50 <= len(curve.step) <= 200
    assert sum(curve.count) == 30_000
    assert curve.step == sorted(curve.step)
    assert all(low <= middle <= high for low, middle, high in zip(curve.min, curve.mean, curve.max, strict=True))
    assert "toy/loss" in lab.client.curve_names(run.run_id)


def test_logs_can_be_followed_until_the_end(lab):
    run = lab.submit(steps=400, rate=800, text_every=10, stderr_lines=5)

    pieces = list(lab.client.stream_logs(run.run_id, follow=True))

    text = {s: b"".join(p.text for p in pieces if p.stream == s).splitlines() for s in ("stdout", "stderr")}
    assert len(text["stdout"]) == 40
    assert len(text["stderr"]) == 5
    assert lab.wait_until_over(run).state is S.TERMINATED


def test_a_deleted_run_leaves_nothing(lab):
    run = lab.submit(steps=10)
    lab.wait_until_over(run)

    lab.client.delete_run(run.run_id)

    assert not lab.rundir(run).path.exists()
    assert not lab.root.config_file(run.run_id).exists()
    assert lab.client.list_runs().total == 0


def test_a_run_whose_config_was_replaced_by_a_folder_can_be_deleted(lab):
    run = lab.submit(steps=10)
    lab.wait_until_over(run)
    for config in (lab.root.config_file(run.run_id), lab.root.worker_file(run.run_id)):
        config.unlink(missing_ok=True)
        (config / "inside").mkdir(parents=True)

    lab.client.delete_run(run.run_id)

    assert not lab.rundir(run).path.exists()
    assert list(lab.root.configs.iterdir()) == []


def test_the_daemon_imports_no_numpy_no_qt_and_no_rl_library(lab):
    maps = Path(f"/proc/{lab.daemon_pid()}/maps").read_text()

    assert "grpc" in maps
    for library in ("numpy", "PySide6", "torch"):
        assert library not in maps


def test_a_part_of_a_curve_is_read_on_its_own(lab):
    run = lab.submit(steps=200, metrics_every=1)
    lab.wait_until_over(run)

    part = lab.client.query_curve(run.run_id, "toy/loss", from_step=50, to_step=59)

    assert part.step == list(range(50, 60))


def test_a_listing_names_the_seed(lab):
    run = lab.submit(steps=1, seed=7)

    listed = lab.client.list_runs().runs[0]

    assert (listed.run_id, listed.seed, listed.algo) == (run.run_id, 7, "")


def test_health_says_how_much_of_the_disk_is_free(lab):
    assert lab.client.health().disk_free_bytes > 0
