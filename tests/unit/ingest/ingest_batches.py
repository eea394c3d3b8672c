"""Batches as a tailer would send them."""

from mosaic.wire import mosaic_pb2 as pb

RUN = "01JD0000000000000000000000"
LINE = 100  # bytes of spool that each event came from
SECOND = 1_000_000_000


def step(i, reward=None, ts_ns=0, **fields):
    return pb.Event(ts_ns=ts_ns, step=pb.Step(step_index=i, reward=reward, **fields))


def episode(i, total, steps=10, **fields):
    return pb.Event(episode=pb.Episode(episode_index=i, total_reward=total, steps=steps, **fields))


def metric(i, ts_ns=0, extra=b"", **values):
    return pb.Event(ts_ns=ts_ns, metric=pb.Metric(names=values.keys(), values=values.values(), step=i, extra=extra))


def lifecycle(event, payload=b"", ts_ns=0):
    return pb.Event(ts_ns=ts_ns, lifecycle=pb.Lifecycle(event=event, payload=payload))


class Spool:
    """Tracks the end of each stream and builds the batch that continues it."""

    def __init__(self, run_id=RUN):
        self.run_id = run_id
        self.offsets = {pb.STDOUT: 0, pb.STDERR: 0}

    def batch(self, *events, text=b"", stream=pb.STDOUT, **fields):
        start = self.offsets[stream]
        end = self.offsets[stream] = start + LINE * len(events) + len(text)
        request = pb.PublishTelemetryRequest(run_id=self.run_id, stream=stream, start=start, end=end, **fields)
        request.events.extend(events)
        if text:
            request.texts.add(stream=stream, offset=end - len(text), text=text)
        return request
