"""The toy worker does what its settings say, and its record lists what it printed."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture
def toy(bench, tmp_path):
    """Starts the toy worker with these settings, in a run folder, with what MOSAIC injects."""

    def start(*flags, **keys):
        config = tmp_path / f"worker-{RUN_ID}.json"
        config.write_text(json.dumps({"run_id": RUN_ID, **keys}))
        path = (bench.autowrap, bench.sdk, bench.toy)
        env = {"MOSAIC_RUN_DIR": str(tmp_path)}
        return bench.start("-m", "toy_worker.cli", "--config", config, *flags, path=path, env=env)

    return start


@pytest.fixture
def run(bench, toy):
    return lambda *flags, **keys: bench.end(toy(*flags, **keys))


def record(folder: Path) -> list[tuple[str, int]]:
    """(kind, step) of every line in the record, totals left out."""
    rows = [line.split() for line in (folder / "toy_record.bin").read_text().splitlines()]
    noted = [row for row in rows if row[0] != "total"]
    assert [int(row[0]) for row in noted] == list(range(len(noted)))
    return [(row[1], int(row[2])) for row in noted]


def kind(line: bytes) -> str:
    value = json.loads(line) if line.startswith(b"{") else {}
    return f"lifecycle:{value['event']}" if "event" in value else value.get("event_type", "text")


def living(marker: str) -> list[int]:
    """Processes whose command line contains `marker`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("plain", [False, True])
def test_the_record_is_what_was_printed(run, tmp_path, plain):
    ended = run(steps=5000, text_every=7, heartbeat_s=0.0001, use_plain_print=plain)

    assert ended.code == 0, ended.err
    assert [name for name, _ in record(tmp_path)] == [kind(line) for line in ended.lines]
    total = (tmp_path / "toy_record.bin").read_text().splitlines()[-1]
    assert total.startswith(f"total {len(ended.lines)} ")
    assert " step=5000" in total


def test_it_learns_the_same_from_the_same_seed(bench, run):
    returns = []
    for seed in (1, 1, 2):
        ended = run(steps=1000, seed=seed)
        returns.append([line["total_reward"] for line in ended.objects if line.get("event_type") == "episode"])
        bench.out.unlink()

    assert returns[0] == returns[1] != returns[2]
    assert len(returns[0]) == 20
    assert sum(returns[0][-3:]) > 2 * sum(returns[0][:3])


def test_metrics_and_agents_are_as_configured(run):
    ended = run(total_timesteps=20, metrics_every=5, agents=2, env_index=3, episode_length=10)

    steps = [line for line in ended.objects if line.get("event_type") == "step"]
    assert len(steps) == 40
    assert {(line["agent_id"], line["env_index"]) for line in steps} == {("agent_0", 3), ("agent_1", 3)}
    metrics = [line for line in ended.objects if line.get("event_type") == "metric"]
    assert [line["step"] for line in metrics] == [0, 5, 10, 15]
    assert set(metrics[0]["values"]) == {"toy/loss", "charts/SPS", "charts/episodic_return"}


def test_it_leaves_a_manifest(run, tmp_path):
    run(steps=1)

    assert json.loads((tmp_path / "analytics.json").read_text())["worker_type"] == "toy"


def test_a_dry_run_prints_the_settings_and_measures_nothing(run, tmp_path):
    ended = run("--dry-run", "--grpc", "--grpc-target", "127.0.0.1:1", steps=7)

    assert ended.code == 0
    assert b'"steps": 7' in ended.out
    assert b"event" not in ended.out
    assert not (tmp_path / "toy_record.bin").exists()


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"stpes": 1}, "stpes: the worker has no such setting. Did you mean 'steps'?"),
        ({"steps": "many"}, 'steps: must be an integer, not "many"'),
        ({"steps": True}, "steps: must be an integer, not true"),
        ({"rate": "x"}, "rate: must be a number"),
        ({"run_id": ""}, "run_id is missing"),
    ],
)
def test_an_invalid_setting_is_refused(run, keys, reason):
    ended = run(**keys)

    assert ended.code == 2
    assert reason in ended.err
    assert "Traceback" not in ended.err


def test_it_crashes(run):
    ended = run(crash_at=5)

    assert ended.code == 1
    assert ended.objects[-1]["event"] == "run_failed"
    assert "asked to crash at step 5" in ended.err


def test_it_exits_with_the_given_code(run):
    assert run(steps=1, exit_code=37).code == 37


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM"])
def test_it_kills_itself_and_a_synchronous_record_misses_at_most_one_line(run, tmp_path, name):
    ended = run(signal_at=40, kill_self=name, record_sync=True)

    assert ended.code == (143 if name == "SIGTERM" else -getattr(signal, name))
    assert len(ended.lines) - len(record(tmp_path)) in (0, 1)
    assert ("step", 39) in record(tmp_path)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_it_hangs_without_heartbeats_and_goes_on(run, tmp_path):
    ended = run(steps=3, hang_at=2, hang_s=0.2, heartbeat_s=0.01)

    assert ended.code == 0
    events = [json.loads(line) for line in ended.lines]
    second = next(i for i, line in enumerate(events) if line.get("step_index") == 2)
    before = max(i for i, line in enumerate(events) if line.get("step_index") == 1)
    beats = [line for line in events[before:second] if line.get("event") == "heartbeat"]
    # The last heartbeat before the hang and the first one after it; otherwise there would be about twenty.
    assert len(beats) <= 3


def test_it_stalls_with_heartbeats_that_do_not_advance(bench, toy):
    process = toy(stall_progress_at=2, heartbeat_s=0.005)

    bench.wait_for(b'"progress":2', process)
    bench.wait_until(lambda: bench.out.read_bytes().count(b'"progress":2') > 5, process)
    assert b'"step_index":2' not in bench.out.read_bytes()

    os.kill(process.pid, signal.SIGTERM)
    assert bench.end(process).code == 143


def test_it_hangs_busily_and_ignores_sigterm(bench, toy):
    process = toy(busy_hang_at=1, ignore_sigterm=True)
    bench.wait_for(b'"step_index":0', process)
    used = cpu_s(process.pid)

    os.kill(process.pid, signal.SIGTERM)

    bench.wait_until(lambda: cpu_s(process.pid) > used + 0.05, process)
    assert process.poll() is None


WAYS = [
    {"fork_children": 2},
    {"fork_children": 1, "double_fork": True},
    {"fork_children": 1, "setsid": True},
    {"clear_environment": True},
    {"rename_process": "kworker"},
    {"double_fork": True, "setsid": True, "clear_environment": True, "rename_process": "sh"},
]


@pytest.mark.parametrize("keys", WAYS, ids=lambda keys: "+".join(keys))
def test_its_children_outlive_it(run, tmp_path, keys):
    marker = str(tmp_path) if not keys.get("clear_environment") else f"toy-child-of-{RUN_ID}"
    before = set(living(marker))

    ended = run(steps=1, **keys)

    children = set(living(marker)) - before
    try:
        assert ended.code == 0, ended.err
        assert len(children) == keys.get("fork_children", 1)
        for child in children:
            if keys.get("setsid"):
                assert os.getsid(child) == child or keys.get("double_fork")
            if keys.get("clear_environment"):
                assert Path(f"/proc/{child}/environ").read_bytes() == b""
            elif "rename_process" in keys:
                assert Path(f"/proc/{child}/comm").read_text() == "kworker\n"
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)


def test_garbage_is_printed_and_recorded(run, tmp_path):
    ended = run(steps=40, garbage_every=2)

    names = {name for name, _ in record(tmp_path) if name.startswith("garbage:")}
    assert len(names) == 18
    assert ended.out.count(b"\n") == len(record(tmp_path))
    assert b"\xff\xfe" in ended.out


def test_it_prints_a_long_line_whole(run):
    ended = run(steps=1, long_line_bytes=3_000_000)

    assert b"\n" + b"x" * 3_000_000 + b"\n" in ended.out


def test_it_runs_out_of_memory(run):
    ended = run(steps=1, eat_memory_mb=4096, rlimit_mb=300)

    assert ended.code == 1
    assert "MemoryError" in ended.err


def test_it_ends_without_telemetry(run, tmp_path):
    ended = run(steps=100, no_telemetry=True)

    assert (ended.code, ended.out) == (0, b"")
    assert record(tmp_path) == []


def test_it_dies_in_the_middle_of_a_line(run):
    ended = run(half_line_then_kill=3)

    assert ended.code == -signal.SIGKILL
    assert ended.out.endswith(b'{"event_type":"step","step_index":3,"rew')


def test_it_fails_and_exits_with_0(run):
    ended = run(steps=1, run_failed_exit_0=True)

    assert ended.code == 0
    assert [line["event"] for line in ended.objects if "event" in line][-1] == "run_failed"


def test_it_closes_stdout_and_goes_on(run, tmp_path):
    ended = run(steps=10, close_stdout_at=5, metrics_every=0)

    steps = [line["step_index"] for line in ended.objects if "step_index" in line]
    assert steps == [0, 1, 2, 3, 4]
    assert [step for name, step in record(tmp_path) if name == "step"] == steps
    assert (tmp_path / "analytics.json").exists()


def test_it_truncates_stdout(run):
    ended = run(steps=10, truncate_stdout_at=5)

    assert "toy: opened /dev/stdout for writing" in ended.err
    assert [line["step_index"] for line in ended.objects if "step_index" in line] == [5, 6, 7, 8, 9]


def test_it_prints_a_burst_and_lines_on_stderr(run):
    ended = run(steps=1, burst=5000, stderr_lines=3)

    burst = [line["step"] for line in ended.objects if line.get("name") == "toy/burst"]
    assert burst == list(range(5000))
    assert re.findall(r"line (\d) on stderr", ended.err) == ["0", "1", "2"]


def test_it_ends_without_a_newline(run):
    ended = run(steps=1, no_newline_at_end=True)

    assert ended.code == 0
    assert not ended.out.endswith(b"\n")
    assert ended.objects[-1]["name"] == "toy/last"


def rewards(ended):
    return {line["step_index"]: line["reward"] for line in ended.objects if line.get("event_type") == "step"}


def payloads(ended, event):
    return [line["payload"] for line in ended.objects if line.get("event") == event]


def test_a_resumed_training_takes_the_steps_that_the_saved_one_would_have_taken(bench, run, tmp_path):
    whole = rewards(run(steps=400, seed=3))
    bench.out.unlink()
    stopped = run(steps=400, seed=3, checkpoint_every=100, crash_at=250)
    bench.out.unlink()
    saved = tmp_path / "checkpoints" / "checkpoint-000000000200.json"

    resumed = run(steps=400, seed=3, checkpoint=str(saved))

    assert [payload["step"] for payload in payloads(stopped, "checkpoint_saved")] == [100, 200]
    assert payloads(resumed, "checkpoint_loaded") == [{"path": str(saved), "step": 200}]
    assert rewards(resumed) == {step: reward for step, reward in whole.items() if step >= 200}


def test_the_best_evaluation_is_kept_when_later_ones_are_worse(run, tmp_path):
    ended = run(steps=400, eval_every=100, eval_episodes=3, forget_at=250)

    best = json.loads((tmp_path / "checkpoints" / "best" / "best.json").read_text())
    assert (best["step"], best["episodes"], best["seeds"]) == (200, 3, [1000000, 1000001, 1000002])
    assert json.loads((tmp_path / "checkpoints" / "best" / best["path"]).read_text())["step"] == 200
    assert [(payload["step"], payload["best"]) for payload in payloads(ended, "checkpoint_saved")] == [
        (100, True),
        (200, True),
    ]
    episodes = [line for line in ended.objects if line.get("agent_id") == "eval"]
    assert [line["global_step"] for line in episodes] == [step for step in (100, 200, 300, 400) for _ in range(3)]


def test_an_evaluation_gives_the_same_returns_for_the_same_seeds(bench, run, tmp_path):
    run(steps=200, checkpoint_every=200)
    keys = {"checkpoint": str(tmp_path / "checkpoints" / "checkpoint-000000000200.json"), "eval_episodes": 4}
    returns = []
    for seed in (5, 5, 6):
        bench.out.unlink()
        run(extras={"mode": "policy_eval"}, seed=seed, **keys)
        summary = json.loads((tmp_path / "eval_summary.json").read_text())
        returns.append([row["return"] for row in summary["rows"]])

    assert returns[0] == returns[1] != returns[2]
    assert returns[0][1:] == returns[2][:-1]
    assert summary["seeds"] == [6, 7, 8, 9]


@pytest.mark.parametrize(
    ("text", "reason"), [("", "damaged"), ("[1]", "damaged"), ("{}", "not a checkpoint of the toy worker")]
)
def test_a_checkpoint_that_cannot_be_used_is_refused_in_one_sentence(run, tmp_path, text, reason):
    (tmp_path / "bad.json").write_text(text)

    ended = run(checkpoint=str(tmp_path / "bad.json"))

    assert ended.code != 0
    assert reason in ended.err
    assert "Traceback" not in ended.err
