"""The trust table of docs/reliability.md as data: what is read, who can write it, what happens if it lies.

The words are the documentation's; this file adds the place of each file, which the adversary damages.
"""

from dataclasses import dataclass
from pathlib import Path

from mosaic.model.rundir import RunDir, StateRoot

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "## Who can write what is read", "## How it is tested"
HEAD = "what is read"
PLACES = {  # row → an attribute of RunDir ("run.") or StateRoot ("root."), and a suffix after "-"
    "`launch.json`": "run.launch",
    "`owner.lock`": "run.owner_lock",
    "`started.json`": "run.started",
    "`exit.json`": "run.exit",
    "`tail.lock`": "run.tail_lock",
    "`commands.jsonl`": "run.commands",
    "`holder.log`": "run.holder_log",
    "`tailer.log`": "run.tailer_log",
    "`incoming/`, pieces of files from a node": "run.incoming",
    "`control/{run_id}/`, the folder itself": "run.control",
    "`{run_id}/`, the run's folder": "run.path",
    "`telemetry.sqlite`": "run.telemetry",
    "`telemetry.sqlite-wal`": "run.telemetry-wal",
    "`logs/worker.stdout.log`, the spool": "run.stdout",
    "`logs/worker.stderr.log`": "run.stderr",
    "`logs/`": "run.logs",
    "`provenance.json`": "run.provenance",
    "`analytics.json`": "run.analytics",
    "`checkpoints/`, `commit.json`, `best.json`": "run.checkpoints",
    "`tensorboard/`": "run.tensorboard",
    "`videos/`": "run.videos",
    "`config/base_config.json`, `curriculum_config.json`": "run.config",
    "`operators.json`": "run.operators_file",
    "`operators/`": "run.operators",
    "`configs/config-{run_id}.json`": "root.config_file",
    "`configs/worker-{run_id}.json`": "root.worker_file",
    "`configs/`": "root.configs",
    "`registry.db`": "root.registry",
    "`registry.db-wal`": "root.registry-wal",
    "`backups/`, of the registry": "root.backups",
    "`control/registry.json`, when the registry was made or rebuilt": "root.registry_origin",
    "`reserve/`": "root.reserve",
    "`machine-id`": "root.machine_id",
    "`place.json`, the root's own place": "root.place",
    "`daemon.pid`": "root.pid",
    "`daemon.lock`": "root.lock",
    "`daemon.token`": "root.token",
    "`daemon.addr`": "root.address",
    "`daemon.sock`": "root.socket",
    "`daemon.json`": "root.settings",
    "`nodes.key`": "root.nodes_key",
    "`nodes.crt`": "root.nodes_certificate",
    "`databases`, the folder of a split root": "root.databases",
    "`clusters/<name>.toml`": "root.clusters",
    "`telemetry/telemetry.sqlite`, the index": "root.index",
    "`telemetry/`": "root.telemetry",
    "`logs/trainer_daemon.log`": "root.daemon_log",
    "`logs/gym_gui.log`": "root.window_log",
    "`logs/` of the root": "root.logs",
    "`gui.ini`": "root.window_settings",
    "`envs/<worker>/`, `mosaic.json`": "root.envs",
    "`envs/.answers/`": "root.answers",
    "`envs/.scripts/<name>/`": "root.script_envs",
    "`cache/`": "root.cache",
    "`trainer/control/`": "root.control",
    "`trainer/`": "root.trainer",
}
# Shared by all runs, and the user's alone: without them nothing runs, which is nobody's trouble but the user's.
NOT_DAMAGED = {
    "root.trainer",
    "root.control",
    "root.configs",
    "root.telemetry",
    "root.logs",
    "root.clusters",
    "root.databases",
    "root.envs",
    "root.answers",
    "root.script_envs",
    "root.cache",
}
OF_ONE_RUN = {"root.config_file", "root.worker_file"}


@dataclass(frozen=True)
class Row:
    name: str
    readers: str
    writers: str
    if_it_lies: str

    @property
    def place(self) -> str:
        """Empty for what is not a file of the state root."""
        return PLACES.get(self.name, "")

    @property
    def is_of_one_run(self) -> bool:
        return self.place.startswith("run.") or self.place in OF_ONE_RUN


def read_table(document: Path = DOCUMENT) -> list[Row]:
    section = document.read_text().partition(BEGIN)[2].partition(END)[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [Row(*cells) for cells in lines if cells[0] != HEAD]


def path_of(place: str, root: StateRoot, rundir: RunDir) -> Path | None:
    """Where it lies; None if this layout does not have it."""
    owner, _, rest = place.partition(".")
    name, dash, suffix = rest.partition("-")
    found = getattr(rundir if owner == "run" else root, name, None)
    if callable(found):
        found = found(rundir.run_id)
    return None if found is None else Path(f"{found}{dash}{suffix}")
