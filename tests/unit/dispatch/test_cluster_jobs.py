"""The jobs of a cluster as last seen."""

import threading
from types import SimpleNamespace

import pytest

from mosaic.dispatch.cluster_jobs import Jobs, JobWatch
from mosaic.model.errors import MosaicError


class Engine:
    """A cluster whose answers are given one after the other; the last one again and again."""

    cluster = SimpleNamespace(name="c")

    def __init__(self, *answers):
        self._answers = [*answers]

    def jobs(self):
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def answers_of(monkeypatch):
    monkeypatch.setattr("mosaic.dispatch.cluster_jobs.SHORTEST_PAUSE_S", 0.001)

    def first(count, engine):
        """The first so many answers."""
        found: list[Jobs] = []
        enough = threading.Event()

        def heard(jobs):
            found.append(jobs)
            if len(found) >= count:
                enough.set()

        watch = JobWatch(engine, heard)
        watch.newest()
        assert enough.wait(20)
        return watch, found[:count]

    return first


@pytest.mark.parametrize("error", [MosaicError("no answer"), RecursionError(), ValueError("odd")])
def test_an_answer_that_cannot_be_read_is_none(answers_of, error):
    job = SimpleNamespace(id="1", name="mosaic-RUN-1")

    watch, found = answers_of(2, Engine([job], error))

    assert [*found[0].by_name] == ["mosaic-RUN-1"]
    assert found[1].problem
    assert found[1].by_name == {}
    assert watch.newest().problem  # and not the answer before it
