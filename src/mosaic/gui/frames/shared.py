"""Frames of a run on this machine, read from its shared memory."""

from mosaic_sdk.fastlane import FastLaneReader

from mosaic.client import Frame


class SharedFrames:
    """A reader whose frames are those of the client. FileNotFoundError if the run has no FastLane yet."""

    def __init__(self, run_id: str, lane: int | None) -> None:
        self._reader = FastLaneReader.attach(run_id, lane=lane)

    def fresh_frame(self) -> Frame | None:
        found = self._reader.fresh_frame()
        if found is None:
            return None
        cost_ns = self._reader.cost_ns
        return Frame(found.pixels, found.number, *found.metrics, found.when_ns, cost_ns, is_shared=True)

    @property
    def is_current(self) -> bool:
        return self._reader.is_current

    def close(self) -> None:
        self._reader.close()
