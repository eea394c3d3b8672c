"""The tests of the DreamerV3 worker. Without its environment (portal; jax for the agent) they are not collected."""

import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if importlib.util.find_spec("dreamer_worker") is None:
    sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))  # for modules that tests share: pytest's import mode importlib does not add the folder

NEEDS = {"portal": ["test_*.py"], "jax": ["test_agent*.py"]}
collect_ignore_glob = [
    pattern for module, patterns in NEEDS.items() if importlib.util.find_spec(module) is None for pattern in patterns
]
LIMIT_S = 240


@pytest.fixture
def secret():
    return "a-secret-for-tests"


@pytest.fixture
def full_disk():
    """`with full_disk(1000):` limits the size of files, here and in processes started meanwhile.

    A writer sees the same as on a full disk: an OSError in the middle of a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextmanager
    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limit


class Run:
    """A real run of the worker, started as MOSAIC starts it; with a random agent by default."""

    limit_s = LIMIT_S
    prefix = ()  # a command prefix, such as for another network

    def __init__(self, folder, config):
        self.folder = folder
        self.config = folder / "config.json"
        self.config.write_text(json.dumps({**TINY, "logdir": str(folder), **config}))
        self.process = None

    def start(self, *arguments):
        path = f"{HERE.parent}{os.pathsep}{HERE}"  # the worker, and the envs of the tests
        variables = {**os.environ, "PYTHONPATH": path, "DREAMER_LOG": "INFO"}
        for name in ("MOSAIC_RUN_DIR", "MOSAIC_CHECKPOINT_DIR", "MOSAIC_RUN_ID"):
            variables.pop(name, None)
        command = [*self.prefix, sys.executable, "-m", "dreamer_worker.cli", "--config", str(self.config), *arguments]
        with open(self.folder / "stdout.log", "ab") as out, open(self.folder / "stderr.log", "ab") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, env=variables, start_new_session=True)
        return self

    def wait(self):
        return self.process.wait(self.limit_s)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self

    @property
    def counters(self):
        from dreamer_worker.checkpoint import Counters

        return Counters(self.folder / "counters.bin")

    def children(self):
        """Role → pid of the live processes."""
        found = {}
        for task in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            for pid in map(int, task.read_text().split()):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if b"dreamer_worker.life" in words:  # a dead process has no arguments, a new one still its parent's
                    found[words[-2].decode()] = pid
        return found

    def until(self, is_so):
        """Wait until `is_so()`; fail if the run ends before, or after minutes."""
        limit = time.monotonic() + self.limit_s
        while not is_so():
            assert self.process.poll() is None, f"the run ended with {self.process.returncode}: {self.stderr}"
            assert time.monotonic() < limit, f"it did not happen: {self.stderr}"
            time.sleep(0.02)
        return self

    def played(self, steps):
        """Wait until `steps` steps are played."""
        path = self.folder / "counters.bin"
        self.until(path.exists)
        counters = self.counters
        return self.until(lambda: counters["env_steps"] >= steps)

    @property
    def stderr(self):
        return (self.folder / "stderr.log").read_text()[-3000:]

    @property
    def lines(self):
        """Its telemetry."""
        return [
            json.loads(line) for line in (self.folder / "stdout.log").read_text().splitlines() if line.startswith("{")
        ]

    @property
    def metrics(self):
        path = self.folder / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        return [
            json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")
        ]  # the last line may be incomplete

    def end(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


TINY = {
    "run_id": "TEST",
    "env": "dummy_grid",
    "random_agent": True,
    "envs": 2,
    "eval_envs": 1,
    "batch_size": 4,
    "batch_length": 8,
    "report_length": 4,
    "train_ratio": 8,
    "replay_gb": 0.01,
    "actor_wait_ms": 2,
    "outputs": ["jsonl", "mosaic"],
    "log_every_s": 0.5,
    "report_every_s": 1,
    "save_every_s": 1,
}


@pytest.fixture
def run_of(tmp_path):
    """Creates runs; their processes end with the test."""
    runs = []

    def make(**config):
        folder = tmp_path / f"run{len(runs)}"
        folder.mkdir()
        runs.append(Run(folder, config))
        return runs[-1]

    yield make
    for run in runs:
        run.end()


@pytest.fixture
def training_in(monkeypatch, request):
    """Creates trainings from the module's TINY, as the worker would; a second one in a folder continues the first."""
    from dreamer_worker.config import DreamerConfig
    from dreamer_worker.parallel import prepare, resume
    from dreamer_worker.telemetry import Telemetry
    from dreamer_worker.train import Training

    for name in ("MOSAIC_RUN_DIR", "MOSAIC_CHECKPOINT_DIR"):
        monkeypatch.delenv(name, raising=False)
    made = []

    def make(folder, **changes):
        config = prepare(DreamerConfig.from_dict({**request.module.TINY, "logdir": str(folder), **changes}))
        resume(config)
        made.append(Training(config, Telemetry(run_id="TEST")))
        return made[-1]

    yield make
    for training in made:
        training.close()


@pytest.fixture
def quickly_compiled():
    """Compile without optimisations: it takes less time than a few updates save."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
