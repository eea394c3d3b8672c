"""The tailer, one process per run: reads the spool, parses and publishes it. It may be killed and restarted at will.

    tail.lock ─▶ RegisterWorker ─▶ cursor ─▶ read, publish, wait ─▶ exit.json ─▶ read to the end, drained ─▶ exit 0
                      ▲                            │
                      └──── the daemon was gone ◀──┘

It keeps no state: the store commits what was parsed together with the offset behind it, and returns that offset.
"""

import argparse
import fcntl
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator

from mosaic.model import durable
from mosaic.model.end_proof import has_ended
from mosaic.model.failpoints import failpoint
from mosaic.model.log_format import LogFormat
from mosaic.model.old_layout import give_control_folder
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.tail.daemon_finder import PATIENCE_S, DaemonFinder
from mosaic.tail.far_daemon import FarDaemon
from mosaic.tail.files_home import FilesHome
from mosaic.tail.node_link import NodeLink
from mosaic.tail.parse import Parser, Request
from mosaic.tail.publish import RETRY_S, CursorLost, Finder, Publisher, Refused, RunGone
from mosaic.tail.reporter import Reporter
from mosaic.tail.request import Requests
from mosaic.tail.spool_reader import CHUNK_BYTES, Lines, Piece, Spool
from mosaic.tail.spool_watch import SpoolWatch
from mosaic.wire import mosaic_pb2 as pb

LOOK_S = 5.0  # between two looks whether the holder lives, on a node that nobody else looks at
PAUSE_AFTER_S = 2.0  # of silence: the stream to the daemon is closed, and the next line opens another

log = logging.getLogger(__name__)


class Tailer:
    """Publishes every byte of the spools once, in order, and returns when the store knows that nothing is left."""

    def __init__(
        self,
        run: RunDir,
        publisher: Publisher,
        requests: Requests,
        spools: "dict[pb.Stream, Spool]",
        watch: SpoolWatch,
        reporter: "Reporter | None" = None,
    ) -> None:
        self._run = run
        self._publisher = publisher
        self._requests = requests
        self._spools = spools
        self._watch = watch
        self._exited = False
        self._reporter = reporter  # of a run whose folder is on this node alone

    def run(self) -> None:
        while True:
            try:
                self._resume()
                self._follow()
                return
            except CursorLost:
                continue
            except Refused as why:
                # Not even a reject was accepted. Retrying loses nothing; giving up would.
                log.error("The daemon refuses this run: %s", why)
                time.sleep(RETRY_S)

    def _resume(self) -> None:
        failpoint("register.ask")
        cursor = self._publisher.register()
        failpoint("register.answered")
        self._spools[pb.STDOUT].seek(cursor.stdout_offset)
        self._spools[pb.STDERR].seek(cursor.stderr_offset)
        if self._reporter:
            self._reporter.report_start()

    def _follow(self) -> None:
        while True:
            # Checked before reading: what is read after the worker's proven end is everything.
            self._exited = self._has_ended()
            if self._exited and self._reporter:
                self._reporter.report_end()
            self._publish_new()
            if self._exited:
                self._publish_the_end()
                return
            self._wait()
            self._publisher.stop_if_deleted()

    def _wait(self) -> None:
        if not self._watch.wait(PAUSE_AFTER_S):
            self._publisher.pause()
            while not self._watch.wait(LOOK_S if self._reporter else None):
                if self._reporter and self._reporter.sees_dead_holder():
                    return

    def _publish_new(self) -> None:
        for stream, piece in self._pieces():
            for part, request in self._requests.small(stream, piece):
                self._publish_piece(stream, part, request)

    def _pieces(self) -> "Iterator[tuple[pb.Stream, Piece]]":
        """Alternate between the two streams, so that a flood in one does not delay the other."""
        waiting = dict(self._spools)
        while waiting:
            for stream, spool in list(waiting.items()):
                if piece := spool.read(final=self._exited):
                    yield stream, piece
                else:
                    del waiting[stream]
            if 0 < self._behind() < CHUNK_BYTES and not self._exited:
                self._watch.linger()  # only a few lines arrived during the publish; wait for those that follow

    def _publish_piece(self, stream: pb.Stream, piece: Piece, request: Request) -> None:
        try:
            self._send(request)
        except Refused as why:
            log.warning("Refused: bytes %d to %d of %s: %s", piece.start, piece.end, stream, why)
            self._publish_refused(stream, piece, str(why))

    def _publish_refused(self, stream: pb.Stream, piece: Piece, why: str) -> None:
        """Split it: only the line that cannot be accepted becomes a reject."""
        halves = piece.halves() if isinstance(piece, Lines) else None
        if halves:
            for half in halves:
                self._publish_piece(stream, half, self._requests.of(stream, half))
        elif piece.end > piece.start:
            self._send(self._requests.refused(stream, piece, why))

    def _publish_the_end(self) -> None:
        if self._reporter:
            self._reporter.send_files()
        request = self._requests.empty(pb.STDOUT, self._spools[pb.STDOUT].offset)
        request.drained = True
        self._send(request)

    def _send(self, request: Request) -> None:
        request.exited = self._has_ended()
        request.behind_bytes = self._behind()
        failpoint("publish.ask")
        reply = self._publisher.publish(request)
        failpoint("ack.received")
        # Never free bytes that are not acknowledged, even if the reply says that they are durable.
        self._spools[request.stream].punch(min(reply.durable_offset, reply.next_offset))

    def _has_ended(self) -> bool:
        # Not just any exit.json: a tailer that leaves too early would lose the rest of the output.
        return has_ended(self._run, self._publisher.launch)

    def _behind(self) -> int:
        return sum(spool.behind for spool in self._spools.values())


def tail_on_node(run: RunDir, write_fds: "dict[pb.Stream, int | None]") -> None:
    """Tail a run on another machine than the daemon's, and keep a link to the daemon for what only this one can see."""
    daemon = FarDaemon(durable.read_json(run.launch) or {})
    link = NodeLink(run, daemon)
    try:
        tail(run, daemon, write_fds, link.start, on_node=True)
    finally:
        link.close()


def tail(
    run: RunDir,
    finder: Finder,
    write_fds: "dict[pb.Stream, int | None]",
    begin: "Callable[[Publisher], None]" = lambda _: None,
    on_node: bool = False,
) -> None:
    """Tail one run to its end; return when nothing is left to do. `begin` is called once it is this one's turn."""
    try:
        _lock(run)
        publisher = Publisher(run, finder)
        begin(publisher)
        launch = publisher.launch
        parser = Parser(launch["run_id"], keep_observations=bool(launch.get("store_observations")))
        # A progress bar on stderr rewrites its line with carriage returns for hours; each one ends a line to show.
        spools = {
            pb.STDOUT: Spool(run.stdout, b"\n", write_fds[pb.STDOUT]),
            pb.STDERR: Spool(run.stderr, b"\n\r", write_fds[pb.STDERR]),
        }
        watch = SpoolWatch(run, [spool.own_path for spool in spools.values()])
        # A tailer that the daemon starts for what came home has nothing to report: its pids and files are not those of
        # the node.
        is_apart = on_node and launch.get("home")
        reporter = Reporter(run, publisher, FilesHome(run, Publisher(run, finder))) if is_apart else None
        Tailer(run, publisher, Requests(launch["run_id"], parser), spools, watch, reporter).run()
        publisher.close()
    except RunGone as why:
        log.info("Stopping, nothing is left to do: %s", why)


def _lock(run: RunDir) -> None:
    """One tailer works per run; a second one waits here. The process holds the lock until it exits."""
    if not run.has_control:
        raise RunGone(f"{run.control} was deleted or replaced")
    try:
        fd = durable.open_lock(run.tail_lock)
    except FileNotFoundError as error:
        raise RunGone(str(error)) from None
    fcntl.flock(fd, fcntl.LOCK_EX)


def main(argv: "list[str] | None" = None) -> int:
    parser = argparse.ArgumentParser(prog="mosaic.tail")
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--address", help="of the daemon on this machine")
    parser.add_argument("--root", help="of the daemon on this machine")
    parser.add_argument("--node", action="store_true", help="the daemon is on another machine: see launch.json")
    parser.add_argument("--stdout-fd", type=int)
    parser.add_argument("--stderr-fd", type=int)
    parser.add_argument("--patience-s", type=float, default=PATIENCE_S)
    args = parser.parse_args(argv)
    run = RunDir(args.run_dir)
    give_control_folder(run)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormat("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    fds = {pb.STDOUT: args.stdout_fd, pb.STDERR: args.stderr_fd}
    if args.node:
        # A scheduler that ends a job signals all of its processes, and the last lines are still to be sent.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tail_on_node(run, fds)
        from mosaic_sdk.fastlane.control import remove_dead  # only here: on the daemon's machine it does this

        remove_dead(run.run_id)  # the frames of this machine, which the daemon cannot see
        return 0
    if not args.root or not args.address:
        parser.error("--root and --address are needed without --node")
    tail(run, DaemonFinder(StateRoot(args.root), args.address, args.patience_s), fds)
    return 0
