"""Whole evaluations in processes of their own, without a model."""

import json
import signal
import time
import uuid

import pytest
from mosaic_sdk.fastlane import FastLaneError, FastLaneReader


def test_a_random_agent_leaves_episodes_metrics_and_a_table(run):
    first = run(tasks="babyai/goto,minihack/MazeWalk-9x9", seed=7)

    assert first.finish() == 0, first.stderr

    episodes = first.lines("episode")
    assert [(line["metadata"]["task"], line["episode_seed"]) for line in episodes] == [
        ("babyai/goto", 7),
        ("babyai/goto", 8),
        ("minihack/MazeWalk-9x9", 7),
        ("minihack/MazeWalk-9x9", 8),
    ]
    assert all(0 <= line["metadata"]["progression"] <= 100 for line in episodes)
    assert "progression/average" in first.lines("metric")[-1]["values"]
    assert first.lines("run_completed")[0]["payload"]["episodes"] == 4
    assert first.results["complete"]
    assert "| BabyAI |" in (first.folder / "results.md").read_text()
    summary = json.loads((first.folder / "eval_summary.json").read_text())
    assert (summary["worker"], summary["episodes"], len(summary["rows"])) == ("balrog", 4, 4)
    assert summary["progression"]["progression"] == first.results["average"]["progression"]
    rows = [json.loads(line) for line in (first.folder / "trajectories/babyai/goto/7.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(len(rows)))
    assert rows[0]["view"]


def test_the_agent_that_does_nothing_gets_nothing(run):
    idle = run(agent="scripted:noop", tasks="babyai/goto")

    assert idle.finish() == 0
    assert {line["action"] for line in idle.lines("step")} == {"drop"}
    assert idle.results["average"]["progression"] == 0


def killed(evaluation, after):
    """Kill the evaluation when so many episodes are over."""
    child = evaluation.start()
    deadline = time.monotonic() + 60
    while len(evaluation.lines("episode")) < after:
        assert child.poll() is None, evaluation.stderr
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return len(evaluation.lines("episode"))


def test_a_killed_evaluation_is_continued_and_equals_a_whole_one(run):
    settings = {"tasks": "babyai/goto,babyai/pickup", "episodes": 30, "max_steps": 30, "trajectories": False}
    whole, dead = run("whole", **settings), run("dead", **settings)
    assert whole.finish() == 0
    done = killed(dead, 3)

    resumed = run("resumed", **settings, resume_from=dead.journal)
    assert resumed.finish() == 0, resumed.stderr

    replayed = [line for line in resumed.lines("episode") if line["metadata"].get("replayed")]
    assert done <= len(replayed) < 60, "what was over is not played again"
    assert {line["episode_index"] for line in resumed.lines("step")} == set(range(len(replayed), 60))
    assert resumed.results["tasks"] == whole.results["tasks"]
    assert resumed.results["complete"]
    assert dead.results["complete"] is False


def test_a_second_start_in_the_same_folder_plays_only_what_is_left(run):
    first = run(episodes=2)
    assert first.finish() == 0
    with open(first.journal, "a") as file:
        file.write('{"kind": "episode", "task": "babyai/go')  # a kill in the middle of a line

    more = run(episodes=3)

    assert more.finish() == 0, more.stderr
    assert {line["episode_index"] for line in more.lines("step")} == {2}
    assert run(episodes=3).finish() == 0
    assert more.results["episodes"] == 3


def test_results_of_other_settings_are_not_mixed(run):
    first = run()
    assert first.finish() == 0

    other = run("other", max_steps=11, resume_from=first.journal)

    assert other.finish() == 2
    assert "with max_steps=10, and this one has 11" in other.stderr
    assert other.lines("step") == []


def test_a_task_that_needs_missing_levels_is_refused_if_named_and_left_out_of_a_whole_environment(run):
    named, whole = run("named", tasks="minihack/Boxoban-Hard"), run("whole", tasks="minihack", episodes=1, max_steps=2)

    assert named.finish() == 2
    assert "needs the Boxoban levels" in named.stderr
    assert whole.finish() == 0
    assert set(whole.results["left_out"]) == {"minihack/Boxoban-Hard", "minihack/Boxoban-Medium"}
    assert whole.results["episodes"] == 6


def test_a_dry_run_plays_nothing(run):
    dry = run(tasks="all")

    assert dry.finish("--dry-run") == 0
    said = (dry.folder / "stdout").read_text()
    assert said.startswith("The config is valid.")
    assert "nle/NetHackChallenge" in said
    assert not (dry.folder / "checkpoints").exists()


@pytest.mark.parametrize(("task", "height"), [("babyai/goto", 256), ("minihack/MazeWalk-9x9", 336)])
def test_games_with_a_picture_are_shown(run, task, height):
    run_id = f"test-{uuid.uuid4().hex[:12]}"
    env = {"MOSAIC_RUN_ID": run_id, "GYM_GUI_FASTLANE_ONLY": "1", "GYM_GUI_FASTLANE_VIDEO_MODE": "single"}
    seen = run(run_id=run_id, tasks=task, episodes=100_000, trajectories=False, env=env)
    child = seen.start()
    try:
        frame, deadline = None, time.monotonic() + 60
        while frame is None and time.monotonic() < deadline:
            frame = look(run_id)
            time.sleep(0.05)
        assert frame is not None, seen.stderr
        assert frame.shape[0] == height
    finally:
        child.terminate()
        assert child.wait(20) == 143
    assert seen.lines("run_cancelled")


def look(run_id):
    """A frame, if one comes within a second."""
    try:
        reader = FastLaneReader.attach(run_id)
    except (FastLaneError, FileNotFoundError):
        return None
    try:
        for _ in range(20):
            frame = reader.latest_frame()
            if frame is not None:
                return frame.pixels
            time.sleep(0.05)
    finally:
        reader.close()
    return None
