"""When a run on another machine is looked at: when something is reported about it or due, and else rarely."""

import pytest

from mosaic.dispatch.launcher import Sight, Stage
from mosaic.dispatch.supervisor import FAR_LOOK_S, FAR_SPREAD_S, far_pause_s
from mosaic.model import durable
from mosaic.model.states import RunState

SWEEP_S = 2.0


@pytest.fixture
def looks(rig, monkeypatch):
    """The runs that were looked at, one entry for each look; the test says what its cluster answers."""
    asked = []
    rig.launcher.sights = {}
    rig.launcher.is_pending = lambda ref: False
    look = rig.launcher.look

    def count(ref):
        asked.append(ref.rundir.run_id)
        return rig.launcher.sights.get(ref.rundir.run_id) or look(ref)

    monkeypatch.setattr(rig.launcher, "look", count)
    return asked


def far(rig, registers=True, **submitted):
    """A run that its cluster has started, in READY."""
    run = rig.submit(on="slurm", **submitted)
    rig.ask(lambda r: r.place(run))
    rig.ask(lambda r: r.note_job(run, 1, "7"))
    rig.ask(lambda r: r.arrive(run))
    durable.write_json(rig.rundir(run).launch, {"run_id": run, "attempt": 1, "secret": "s"})
    rig.hold(run)
    if registers:
        rig.register(run)
    sweep(rig)
    return run


def queued(rig, words="Slurm: Resources"):
    run = rig.submit(on="slurm")
    rig.ask(lambda r: r.place(run))
    rig.ask(lambda r: r.note_job(run, 1, "7"))
    rig.launcher.sights[run] = Sight(Stage.QUEUED, words)
    sweep(rig, 3)
    return run


def sweep(rig, count=1):
    """As the daemon's loop does it, every 2 s."""
    for _ in range(count):
        rig.runs.take_changed()
        rig.turn()
        rig.clock.now += SWEEP_S


def looks_of(rig, looks, run, seconds):
    looks.clear()
    sweep(rig, int(seconds / SWEEP_S))
    return looks.count(run)


def test_a_run_of_which_nothing_is_reported_is_looked_at_rarely_but_for_ever(rig, looks):
    run = far(rig)

    assert 2 <= looks_of(rig, looks, run, 60) <= 3
    assert 2 <= looks_of(rig, looks, run, 60) <= 3


def test_a_run_on_this_machine_is_looked_at_in_every_sweep(rig, looks):
    run = rig.running()

    assert looks_of(rig, looks, run, 20) == 10


def test_a_report_about_a_run_is_followed_by_a_look_at_it_alone(rig, looks):
    run, other = far(rig), far(rig)
    sweep(rig, 2)
    looks.clear()

    rig.dispatcher.wake(run)
    sweep(rig)

    assert (looks.count(run), looks.count(other)) == (1, 0)


def test_until_its_tailer_has_registered_a_run_is_looked_at_in_every_sweep(rig, looks):
    run = far(rig, registers=False)

    assert looks_of(rig, looks, run, 20) == 10


def test_a_report_during_a_look_is_not_lost(rig, looks):
    run = far(rig)
    rig.dispatcher.wake(run)
    rig.turn()  # not taken yet: the report came while this turn was under way
    looks.clear()

    sweep(rig)

    assert looks.count(run) == 1


def test_a_cancel_needs_no_report(rig, looks):
    run = far(rig)
    sweep(rig)

    rig.cancel(run)
    sweep(rig)

    assert rig.launcher.stopped == [run]
    assert looks_of(rig, looks, run, 10) == 5


def test_a_run_whose_start_is_no_longer_recorded_is_cancelled_all_the_same(rig, looks):
    run = far(rig)
    rig.launcher.sights[run] = Sight(Stage.STARTING)

    rig.cancel(run)
    sweep(rig)

    assert rig.launcher.stopped == [run]


@pytest.mark.parametrize(
    ("sight", "words"),
    [
        (Sight(Stage.UNKNOWN), "no answer"),
        (Sight(Stage.RUNNING, "its holder lives"), "its lock is held, but its job has ended"),
    ],
    ids=["silent", "held"],
)
def test_a_run_of_which_its_cluster_is_not_sure_is_looked_at_in_every_sweep(rig, looks, sight, words):
    run = far(rig)
    rig.launcher.sights[run] = sight
    rig.dispatcher.wake(run)

    assert looks_of(rig, looks, run, 20) == 10, words


def test_an_end_is_followed_up_in_every_sweep(rig, looks):
    run = far(rig)
    rig.print(run, b"not stored yet\n")
    rig.exit(run)

    rig.dispatcher.wake(run)

    assert looks_of(rig, looks, run, 20) >= 10
    assert not rig.get(run).state.is_over


def test_an_end_of_which_nothing_is_reported_is_seen_all_the_same(rig, looks):
    run = far(rig)
    rig.exit(run)
    rig.runs.get(run).drained = True

    sweep(rig, int((FAR_LOOK_S + FAR_SPREAD_S) / SWEEP_S) + 1)

    assert rig.over(run)[0] is RunState.TERMINATED


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [({"quiet_s": 7}, "hang: no output for"), ({"heartbeat_s": 12}, "hang: no heartbeat for")],
)
def test_a_deadline_of_its_own_is_kept(rig, looks, limits, verdict):
    run = far(rig, limits=limits)
    if "heartbeat_s" in limits:
        rig.runs.heartbeat(run, 1)
        rig.dispatcher.wake(run)

    passed = 0
    while run not in rig.launcher.autopsied:
        sweep(rig)
        passed += 1
        assert passed < 60

    # As for a run on this machine, up to two sweeps.
    assert passed * SWEEP_S <= next(iter(limits.values())) + 2 * SWEEP_S
    assert rig.runs.get(run).end_reason.startswith(verdict)


def test_a_run_that_waits_in_a_queue_rests_until_its_cluster_says_something_else(rig, looks):
    run = queued(rig)

    assert looks_of(rig, looks, run, 60) <= 3

    rig.launcher.sights[run] = Sight(Stage.QUEUED, "Slurm: Priority")
    rig.dispatcher.wake(run)
    sweep(rig)
    assert rig.get(run).waiting_for == "Slurm: Priority"


def test_a_queued_run_is_cancelled_at_the_next_sweep(rig, looks, monkeypatch):
    monkeypatch.setattr(rig.launcher, "stop", lambda ref, how=None: True)
    run = queued(rig)

    rig.cancel(run)
    sweep(rig)

    assert rig.over(run)[0] is RunState.CANCELLED


def test_nothing_is_kept_of_a_run_that_ends_before_it_starts(rig, looks):
    run = queued(rig)
    rig.launcher.keep_log = lambda ref: None
    rig.launcher.sights[run] = Sight(Stage.ENDED, "no such partition", retry=False)

    rig.dispatcher.wake(run)
    sweep(rig)

    assert rig.over(run)[0] is RunState.FAULTED
    assert rig.launcher.forgotten == [run]


def test_the_name_of_a_node_is_short_whatever_its_cluster_says(rig, looks):
    run = queued(rig)
    rig.launcher.sights[run] = Sight(Stage.RUNNING, "", "n" * 100_000)

    rig.dispatcher.wake(run)
    sweep(rig, 3)

    assert set(rig.get(run).node) == {"n"}
    assert len(rig.get(run).node) <= 200


def test_the_next_daemon_looks_for_jobs_that_a_run_has_left(make_rig):
    rig = make_rig()
    rig.launcher.is_pending = lambda ref: False
    over, live, here = far(rig), far(rig), rig.running()
    for run in (over, here):
        rig.exit(run)
        rig.tail(run, exited=True, drained=True)
    sweep(rig, 3)
    states = [rig.get(run).state for run in (over, live, here)]
    rig.launcher.forgotten.clear()

    rig.restart()
    rig.loop.run(rig.dispatcher.recover())

    assert states == [RunState.TERMINATED, RunState.READY, RunState.TERMINATED]
    assert rig.launcher.forgotten == [over]


def test_what_the_last_daemon_had_submitted_is_forgotten_when_it_ends_unstarted(make_rig):
    rig = make_rig()
    run = rig.submit(on="slurm")
    rig.ask(lambda r: r.place(run))  # and no job is recorded: an answer of its cluster was lost

    rig.restart()
    rig.cancel(run)
    sweep(rig)

    assert rig.over(run)[0] is RunState.CANCELLED
    assert rig.launcher.forgotten == [run]


def test_another_daemon_looks_at_once(make_rig):
    rig = make_rig()
    rig.launcher.is_pending = lambda ref: False
    run = far(rig)
    sweep(rig)

    rig.restart()
    rig.exit(run)
    sweep(rig)

    assert rig.runs.get(run).gone


def test_the_looks_at_many_runs_are_spread():
    pauses = [far_pause_s(f"01K{number:023d}") for number in range(200)]

    assert min(pauses) >= FAR_LOOK_S
    assert max(pauses) <= FAR_LOOK_S + FAR_SPREAD_S
    assert max(pauses) - min(pauses) > 0.9 * FAR_SPREAD_S
