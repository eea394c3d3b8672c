import asyncio
import itertools

import pytest

from mosaic.model import frame_viewing
from mosaic.model.errors import NoFrames
from mosaic.model.frame_viewing import view_frames

RUN = "01JCQ"


@pytest.fixture
def impatient(monkeypatch):
    """A viewer that checks whether the run is over whenever there is no new frame."""
    monkeypatch.setattr(frame_viewing, "ASK_S", 0)


def view(looks, wait_s=60, **options):
    """What a viewer shows of a run that returns these values and is over afterwards."""
    left = list(looks)

    async def look():
        return left.pop(0) if left else None

    async def is_over():
        return not left

    async def read():
        return [frame async for frame in view_frames(RUN, look, is_over, 0, wait_s, **options)]

    return asyncio.run(asyncio.wait_for(read(), 30))


def test_a_viewer_gets_each_new_frame_until_the_run_is_over(impatient):
    assert view([None, "first", None, "second"]) == ["first", "second"]


def test_a_pause_after_the_first_frame_is_waited_out_however_long_it_is(impatient):
    assert view(["first", *itertools.repeat(None, 50), "second"], wait_s=0) == ["first", "second"]


def test_a_viewer_stops_some_time_after_the_first_frame_though_the_run_goes_on():
    assert view([None, "first", "second"], lasts_s=0) == ["first"]


def test_a_viewer_gives_up_when_the_first_frame_does_not_come():
    with pytest.raises(NoFrames, match=f"Run {RUN} published no frame for 0 s"):
        view(itertools.repeat(None, 1000), wait_s=0)
