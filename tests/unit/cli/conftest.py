import time

import pytest

from mosaic.client.run import Run
from mosaic.model.rundir import StateRoot
from mosaic.wire import mosaic_pb2 as pb

RUN_ID = "01JCQ5W2ZK8M3N4P5Q6R7S8T9V"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A new state root for this test only."""
    for name in ("MOSAIC_ADDRESS", "MOSAIC_TOKEN_FILE", "MOSAIC_RUN_ID", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MOSAIC_HOME", str(tmp_path / "home"))
    root = StateRoot.from_environment()
    root.make()
    return root


@pytest.fixture
def make_run():
    def make(state="EXECUTING", summary=None, **fields):
        now = time.time()
        defaults = {
            "run_id": RUN_ID,
            "name": "cartpole",
            "worker_name": "toy",
            "created_at": now - 60,
            "updated_at": now,
        }
        info = pb.RunInfo(state=pb.State.Value(state), **{**defaults, **fields})
        info.summary.CopyFrom(pb.Summary(**(summary or {"last_step": -1})))
        return Run.from_wire(info)

    return make
