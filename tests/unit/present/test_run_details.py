"""What the window shows of one run, without a window: history, episodes, provenance, which metrics come first."""

from mosaic.client.events import Episode, Step
from mosaic.client.run import Run
from mosaic.present.episode_rows import MOST, NewestEpisodes
from mosaic.present.metric_choice import first_metrics, search
from mosaic.present.provenance_rows import packages, provenance_rows
from mosaic.present.state_history import history_rows
from mosaic.wire import mosaic_pb2 as pb


def episode(seq, index=0, step=None):
    return Episode(seq, 0, index, 1.5, 10, 0, "agent", True, False, b"", step)


def test_the_newest_state_comes_first_with_its_duration_and_reason():
    moves = [pb.Move(new=pb.INIT, at=100.0), pb.Move(old=pb.INIT, new=pb.HANDSHAKE, at=160.0, reason="a\nb\x1b[31m")]
    run = Run.from_wire(pb.RunInfo(run_id="01A", state=pb.HANDSHAKE, history=moves))

    newest, oldest = history_rows(run, now=165.0)

    assert (newest.state, newest.lasted, newest.reason) == ("▶ HANDSHAKE", "5s", "a")
    assert (oldest.state, oldest.lasted, oldest.reason) == ("◌ INIT", "1m00s", "submitted, about to start")


def test_the_last_state_of_a_run_that_is_over_has_no_duration():
    moves = [pb.Move(new=pb.INIT, at=100.0), pb.Move(old=pb.INIT, new=pb.CANCELLED, at=160.0)]
    run = Run.from_wire(pb.RunInfo(run_id="01A", state=pb.CANCELLED, history=moves))

    assert [row.lasted for row in history_rows(run)] == ["", "1m00s"]


def test_episodes_are_listed_once_and_newest_first():
    newest = NewestEpisodes()

    assert newest.receive([episode(5, 1, 50), Step(6, 0, 1, 0.5, 0, "", 1, False, False, b"")])
    assert newest.receive([episode(2, 0, 25), episode(5, 1, 50)])
    assert not newest.receive([episode(5, 1, 50)])

    assert [row[:4] for row in newest.rows()] == [("1", "1.5", "10", "50"), ("0", "1.5", "10", "25")]


def test_only_so_many_episodes_are_kept():
    newest = NewestEpisodes()

    newest.receive([episode(seq, seq) for seq in range(1, 5 * MOST)])
    newest.receive([episode(1, 1)])

    assert len(newest.rows()) == MOST
    assert newest.rows()[0][0] == f"{5 * MOST - 1:,}"


def test_many_losses_do_not_hide_the_rest():
    names = [f"losses/loss_{number}" for number in range(50)] + ["episode/return", "episode/length", "charts/SPS"]

    chosen = first_metrics(names)

    assert chosen[:2] == ["episode/return", "episode/length"]
    assert "charts/SPS" in chosen
    assert len(chosen) == 6


def test_the_first_charts_of_a_training_show_nothing_twice():
    names = (
        "charts/SPS charts/episodic_return charts/episodic_length charts/learning_rate episode/length episode/return"
    )
    names += " losses/approx_kl losses/clipfrac losses/entropy losses/policy_loss losses/value_loss"
    assert first_metrics(names.split()) == [
        "episode/return",
        "episode/length",
        "losses/policy_loss",
        "losses/value_loss",
        "charts/SPS",
        "losses/entropy",
    ]
    assert first_metrics(["charts/episodic_return"]) == ["charts/episodic_return"]


def test_a_metric_is_found_by_several_words():
    assert search(["losses/policy", "losses/value", "x"], "LOSS val") == ["losses/value"]


def test_provenance_that_a_worker_has_changed_does_no_harm():
    found = {"python": [1], "hardware": {"gpus": ["x", {"model": "H200"}], "cores": 4, "cores_usable": 2}, "argv": 3}

    rows = dict(provenance_rows({**found, "seeds": {"seed": 1}, "host": "box\x1b[31m"}))

    assert rows == {"CPU": "2 of 4 cores", "GPUs": "H200", "Machine": "box", "Seeds": "seed=1"}
    assert packages(found) == []


def test_a_dirty_checkout_is_named():
    found = {"mosaic": {"version": "1.0", "git": {"commit": "0123456789abcdef", "dirty": True}}}

    assert provenance_rows(found) == [("MOSAIC", "1.0 commit 0123456789ab with uncommitted changes")]
