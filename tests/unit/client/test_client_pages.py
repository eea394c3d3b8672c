"""Listings in pages: the client joins them; a daemon without pages answers as before."""

from contextlib import closing

from scripted_daemon import RUN_ID, ScriptedService

from mosaic.wire import mosaic_pb2 as pb


def infos(*numbers):
    return [pb.RunInfo(run_id=str(number), state=pb.TERMINATED) for number in numbers]


def test_the_pages_of_a_listing_are_joined(serve, connect):
    service = ScriptedService()
    service.pages = {
        0: pb.ListRunsReply(runs=infos(5, 4), total=4, next=4),
        4: pb.ListRunsReply(runs=infos(3), total=9, next=3),
        3: pb.ListRunsReply(runs=infos(1), total=9),
    }

    found = connect(serve(service)).list_runs(limit=50)

    assert ([run.run_id for run in found.runs], found.total) == (["5", "4", "3", "1"], 4)
    assert [request.limit for request in service.requests] == [50, 48, 47]


def test_a_daemon_without_pages_is_asked_once(serve, connect):
    service = ScriptedService()
    service.pages = {0: pb.ListRunsReply(runs=infos(2, 1), total=2)}

    assert connect(serve(service)).list_runs().total == 2
    assert len(service.requests) == 1


def test_the_pages_of_curve_names_are_joined(serve, connect):
    assert connect(serve(ScriptedService())).curve_names(RUN_ID) == ["a", "b", "c"]


def test_the_parts_of_a_watched_list_are_joined(serve, connect):
    class Parts(ScriptedService):
        async def WatchRuns(self, request, context):
            yield pb.ListRunsReply(runs=infos(2), total=2, continues=True)
            yield pb.ListRunsReply(runs=infos(1), total=2)
            yield pb.ListRunsReply(deleted=["2"], total=1)

    with closing(connect(serve(Parts())).watch_runs()) as changes:
        first, second = next(changes), next(changes)

    assert ([run.run_id for run in first.runs], first.is_whole) == (["2", "1"], True)
    assert (second.deleted, second.is_whole) == (("2",), False)
