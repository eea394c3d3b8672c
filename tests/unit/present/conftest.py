import time

import pytest

from mosaic.client.run import Run
from mosaic.wire import mosaic_pb2 as pb


@pytest.fixture
def make_run():
    """A run as the daemon lists it; runs without an id get ids in the order in which they are made."""
    made = iter(range(100_000))

    def make(state="EXECUTING", summary=None, **fields):
        now = time.time()
        defaults = {
            "run_id": f"01JCQ{next(made):021}",
            "name": "cartpole",
            "worker_name": "toy",
            "created_at": now - 60,
            "updated_at": now,
        }
        info = pb.RunInfo(state=pb.State.Value(state), **{**defaults, **fields})
        info.summary.CopyFrom(pb.Summary(**(summary or {"last_step": -1})))
        return Run.from_wire(info)

    return make
