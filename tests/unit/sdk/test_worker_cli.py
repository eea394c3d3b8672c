import json
import os
import signal

import pytest

# Short sleeps, not signal.pause(), which would miss a signal that arrives just before it.
WORKER = """
import os, signal, sys, time
from mosaic_sdk import emit
from mosaic_sdk.cli import run_worker

def train(config, args):
{body}

sys.exit(run_worker(train))
"""


@pytest.fixture
def worker(bench, tmp_path):
    """Writes a worker whose training is `body`, and its config."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"run_id": "r1", "steps": 3}))

    def start(body, *flags, given=config):
        script = WORKER.format(body="\n".join("    " + line for line in body.splitlines()))
        return bench.start("-c", script, *(["--config", given] if given else []), *flags)

    return start


def events(ended):
    return [line["event"] for line in ended.objects if "event" in line]


def test_a_run_is_started_and_completed(bench, worker):
    ended = bench.end(worker("emit.step(0)\nreturn {'steps': config['steps']}"))

    assert ended.code == 0, ended.err
    assert events(ended) == ["run_started", "run_completed"]
    assert ended.objects[-1]["payload"] == {"steps": 3}
    assert ended.objects[-1]["run_id"] == "r1"


@pytest.mark.parametrize(
    ("error", "code"),
    [("mosaic_sdk.config.ConfigError('env_id: no such')", 2), ("mosaic_sdk.cli.WorkFailed('env_id: no such')", 1)],
)
def test_an_error_that_explains_itself_is_printed_without_a_traceback(bench, worker, error, code):
    ended = bench.end(worker(f"import mosaic_sdk.config, mosaic_sdk.cli\nraise {error}"))

    assert (ended.code, ended.err) == (code, "env_id: no such\n")
    assert events(ended) == ["run_started", "run_failed"]
    assert ended.objects[-1]["payload"]["error"] == "env_id: no such"


def test_an_exception_is_a_failed_run_with_its_traceback_on_stderr(bench, worker):
    ended = bench.end(worker("raise RuntimeError('out of luck')"))

    assert ended.code == 1
    assert events(ended) == ["run_started", "run_failed"]
    assert ended.objects[-1]["payload"]["error"] == "out of luck"
    assert "Traceback" in ended.err


@pytest.mark.parametrize(
    ("call", "code", "last"),
    [("sys.exit()", 0, "run_completed"), ("sys.exit(5)", 5, "run_failed"), ("sys.exit('no')", 1, "run_failed")],
)
def test_the_exit_code_of_a_library_is_used(bench, worker, call, code, last):
    ended = bench.end(worker(call))

    assert ended.code == code
    assert events(ended)[-1] == last


PATIENT = """
while True:
    emit.step(0)
    try:
        time.sleep(0.01)
    except Exception:
        pass  # a library that swallows every error
"""


def test_sigterm_cancels_even_where_exceptions_are_swallowed(bench, worker):
    process = worker(PATIENT)
    bench.wait_for(b'"step"', process)

    os.kill(process.pid, signal.SIGTERM)

    ended = bench.end(process)
    assert ended.code == 143
    assert events(ended) == ["run_started", "run_cancelled"]


SLOW_TO_STOP = """
try:
    emit.step(0)
    while True: time.sleep(0.01)
finally:
    emit.step(1)
    signal.sigtimedwait([signal.SIGUSR1], 20)
    emit.step(2)
"""


def test_a_second_sigterm_does_not_interrupt_the_cleanup(bench, worker):
    process = worker("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n" + SLOW_TO_STOP)
    bench.wait_for(b'"step_index":0', process)
    os.kill(process.pid, signal.SIGTERM)
    bench.wait_for(b'"step_index":1', process)

    os.kill(process.pid, signal.SIGTERM)
    os.kill(process.pid, signal.SIGUSR1)

    ended = bench.end(process)
    assert ended.code == 143
    assert b'"step_index":2' in ended.out
    assert events(ended) == ["run_started", "run_cancelled"]


def test_ctrl_c_cancels(bench, worker):
    process = worker(PATIENT)
    bench.wait_for(b'"step"', process)

    os.kill(process.pid, signal.SIGINT)

    ended = bench.end(process)
    assert (ended.code, events(ended)[-1]) == (130, "run_cancelled")


FORKING = """
pid = os.fork()
if pid == 0:
    emit.step(0)
    while True: time.sleep(0.01)
emit.metric("child", pid, 0)
return {"signal": os.WTERMSIG(os.waitpid(pid, 0)[1])}
"""


def test_a_forked_child_dies_of_sigterm_without_reporting_for_the_run(bench, worker):
    process = worker(FORKING)
    bench.wait_for(b'"step_index":0', process)  # printed by the child: Python drops signals that arrive during a fork
    bench.wait_for(b'"child"', process)
    child = next(json.loads(line)["value"] for line in bench.out.read_bytes().splitlines() if b'"child"' in line)

    os.kill(child, signal.SIGTERM)

    ended = bench.end(process)
    assert events(ended) == ["run_started", "run_completed"]
    assert ended.objects[-1]["payload"] == {"signal": signal.SIGTERM}


def test_a_dry_run_does_no_work_and_measures_nothing(bench, worker):
    ended = bench.end(worker("emit.step(0)", "--dry-run"))

    assert ended.code == 0
    assert b"event" not in ended.out
    assert b'"steps": 3' in ended.out


def test_the_flags_of_the_daemon_are_understood(bench, worker):
    body = "return {'grpc': args.grpc, 'target': args.grpc_target, 'verbose': args.verbose}"

    ended = bench.end(worker(body, "--grpc", "--grpc-target", "127.0.0.1:9", "-v"))

    assert ended.objects[-1]["payload"] == {"grpc": True, "target": "127.0.0.1:9", "verbose": True}


@pytest.mark.parametrize("flags", [["--conf", "x"], ["--unknown"], ["--interactive"]])
def test_unknown_flags_are_a_usage_error(bench, worker, flags):
    ended = bench.end(worker("pass", *flags))

    assert ended.code == 2
    assert ended.out == b""
    assert "usage:" in ended.err


def test_without_a_config_the_usage_is_printed(bench, worker):
    ended = bench.end(worker("pass", given=None))

    assert ended.code == 2
    assert "--config" in ended.err


def test_a_config_that_cannot_be_read_fails_the_run_with_a_sentence(bench, worker):
    ended = bench.end(worker("pass", given="/nowhere/config.json"))

    assert ended.code == 2
    assert ended.err.startswith("Cannot read the config /nowhere/config.json")
    assert "Traceback" not in ended.err
    assert events(ended) == ["run_failed"]
