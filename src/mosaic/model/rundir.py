"""The paths of the state root, and of the folder of one run inside it.

<root>/                     MOSAIC_HOME, else $XDG_STATE_HOME/mosaic, else ~/.local/state/mosaic
  machine-id                the machine this root belongs to
  place.json                where this root was made, see place.py
  trainer/
    configs/  config-{run_id}.json  worker-{run_id}.json
    runs/ custom_scripts/ evals/    {run_id}/ each, see RunDir
    control/                        {run_id}/ each: what holder and daemon believe, hidden from workers
    backups/  registry-{revision}.db
    registry.db  reserve/  daemon.pid daemon.lock daemon.token daemon.addr daemon.sock daemon.json
    nodes.key  nodes.crt    of the listener for other machines
  clusters/<name>.toml      settings of a cluster, written by the user
  databases                 a text: the folder on this machine's own disk that has registry.db, backups/, reserve/,
                            telemetry/ (of all runs) and the daemon's files instead, see `mosaic root split`
  telemetry/telemetry.sqlite        the index over all runs
  logs/  gym_gui.log trainer_daemon.log
  envs/<worker>[@variant]/  .scripts/<name>/   environments of workers, and those of `mosaic env create`
  gui.ini                   what the window remembers
"""

import os
import stat
from pathlib import Path

EVALS = "evals"
AREAS = ("runs", "custom_scripts", EVALS)
CONTROL = "control"


class RunDir:
    """Every path of one run: in its folder, which its worker writes, and in its control folder, which no worker sees.

    ../control/{run_id}/   a link to {run_id}/ for a run that an older version started: see model/old_layout.py
      launch.json     daemon → holder: what to start (0600, contains the nonce and the secret that proves the end)
      owner.lock      flocked by the holder while it is alive; its text is the holder's pid
      started.json    holder: durably written before the worker starts
      exit.json       holder: how the worker ended, after proof of death
      tail.lock       flocked by the active tailer
      commands.jsonl  daemon → holder: what clients sent to the worker; only for workers that take commands
      holder.log tailer.log
      incoming/       runs whose folder is on a node: pieces of the files that it sends home
    {run_id}/
      telemetry.sqlite provenance.json analytics.json
      logs/           worker.stdout.log worker.stderr.log (the spool)
      tensorboard/ checkpoints/ videos/
      config/         custom scripts only: base_config.json curriculum_config.json
      operators.json  runs with operators only: daemon → worker: how to start each operator (0600)
      operators/      NAME.json: the config of each operator (0600)
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = Path(path)
        self.run_id = self.path.name
        self.control = self.path.parent.parent / CONTROL / self.run_id
        self.launch = self.control / "launch.json"
        self.owner_lock = self.control / "owner.lock"
        self.started = self.control / "started.json"
        self.exit = self.control / "exit.json"
        self.tail_lock = self.control / "tail.lock"
        self.commands = self.control / "commands.jsonl"
        self.holder_log = self.control / "holder.log"
        self.tailer_log = self.control / "tailer.log"
        self.incoming = self.control / "incoming"
        self.telemetry = self.path / "telemetry.sqlite"
        self.provenance = self.path / "provenance.json"
        self.analytics = self.path / "analytics.json"
        self.logs = self.path / "logs"
        self.stdout = self.logs / "worker.stdout.log"
        self.stderr = self.logs / "worker.stderr.log"
        self.tensorboard = self.path / "tensorboard"
        self.checkpoints = self.path / "checkpoints"
        self.videos = self.path / "videos"
        self.config = self.path / "config"
        self.operators_file = self.path / "operators.json"
        self.operators = self.path / "operators"

    @property
    def is_evaluation(self) -> bool:
        return self.path.parent.name == EVALS

    @property
    def is_in_place(self) -> bool:
        """Whether both folders are there. A link in their place would lead every write elsewhere."""
        return is_folder(self.path) and self.has_control

    @property
    def has_control(self) -> bool:
        """Whether its control folder is there: a folder, or an older version's link to the run's own folder."""
        try:
            return is_folder(self.control) or os.path.samefile(self.control, self.path)
        except OSError:
            return False

    def make(self) -> None:
        for folder in (self.control, self.path, self.logs, self.tensorboard, self.checkpoints, self.videos):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def remove_outside_telemetry(self) -> None:
        """Remove its telemetry if that is not in its folder."""
        if self.path not in self.telemetry.parents:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{self.telemetry}{suffix}").unlink(missing_ok=True)

    def spool(self, stream: str) -> Path:
        """The file behind `stdout` or `stderr`."""
        return {"stdout": self.stdout, "stderr": self.stderr}[stream]


class StateRoot:
    """Every path outside the run folders."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = Path(path)
        self.machine_id = self.path / "machine-id"
        self.place = self.path / "place.json"
        self.trainer = self.path / "trainer"
        self.configs = self.trainer / "configs"
        self.control = self.trainer / CONTROL
        self.databases = self.path / "databases"
        self.own = _own_folder(self.databases)  # None: everything is below the root itself
        kept = self.own or self.trainer
        self.registry = kept / "registry.db"
        self.registry_origin = self.control / "registry.json"
        self.backups = kept / "backups"
        self.reserve = kept / "reserve"
        self.pid = kept / "daemon.pid"
        self.lock = kept / "daemon.lock"
        self.token = kept / "daemon.token"
        self.address = kept / "daemon.addr"
        self.socket = kept / "daemon.sock"
        self.settings = self.trainer / "daemon.json"
        self.nodes_key = kept / "nodes.key"
        self.nodes_certificate = kept / "nodes.crt"
        self.clusters = self.path / "clusters"
        self.telemetry = (self.own or self.path) / "telemetry"
        self.index = self.telemetry / "telemetry.sqlite"
        self.logs = self.path / "logs"
        self.daemon_log = self.logs / "trainer_daemon.log"
        self.window_log = self.logs / "gym_gui.log"
        self.window_settings = self.path / "gui.ini"
        self.envs = self.path / "envs"
        self.answers = self.envs / ".answers"
        self.script_envs = self.envs / ".scripts"  # of `mosaic env create`
        self.cache = self.path / "cache"  # compiled by the libraries of workers, per environment

    @classmethod
    def from_environment(cls) -> "StateRoot":
        from mosaic.model.home import state_home  # only here, because the holder imports this file

        return cls(state_home(os.environ))

    def make(self) -> None:
        areas = [self.trainer / area for area in AREAS]
        places = (self.configs, self.control, *areas, self.telemetry, self.logs, self.envs)
        for folder in (self.path, self.trainer, *places):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.own:
            self._run_telemetry().mkdir(mode=0o700, exist_ok=True)
            if not os.path.lexists(self.own / CONTROL):
                # The registry writes its records beside itself, and they belong to the runs.
                (self.own / CONTROL).symlink_to(self.control)

    def _run_telemetry(self) -> Path:
        return self.telemetry / "runs"

    def area(self, name: str) -> Path:
        return self.trainer / name

    def run(self, area: str, run_id: str) -> RunDir:
        rundir = RunDir(self.area(area) / run_id)
        if self.own:
            rundir.telemetry = self._run_telemetry() / f"{run_id}.sqlite"
        return rundir

    def config_file(self, run_id: str) -> Path:
        return self.configs / f"config-{run_id}.json"

    def worker_file(self, run_id: str) -> Path:
        return self.configs / f"worker-{run_id}.json"


def _own_folder(pointer: Path) -> "Path | None":
    """The folder that a file names; None if there is no such file."""
    try:
        fd = os.open(pointer, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        text = os.fsdecode(os.read(fd, 4096)).strip()
    except OSError:
        return None
    finally:
        os.close(fd)
    return Path(text) if text.startswith("/") else None


def is_folder(path: Path) -> bool:
    """Not so for a link to a folder."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
