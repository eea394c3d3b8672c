"""MLflow's file store: `mlruns/EXPERIMENT/RUN/` with meta.yaml, metrics/, params/ and tags/, one small file for each.

A line of a metric is `TIMESTAMP VALUE STEP`, the time in milliseconds.
"""

from collections.abc import Iterator

from mosaic.imports.block import Block, Gathering
from mosaic.imports.files import Changed, Damaged, lines_after, read_text, read_yaml
from mosaic.imports.source import Source
from mosaic.imports.values import cell_number, flatten, number_of, step_of, typed

META, METRICS, PARAMS, TAGS = "meta.yaml", "metrics", "params", "tags"
MOST_FILES = 20_000
RUNNING, SCHEDULED, FINISHED, FAILED, KILLED = 1, 2, 3, 4, 5
STATUSES = {"RUNNING": 1, "SCHEDULED": 2, "FINISHED": 3, "FAILED": 4, "KILLED": 5}
Point = tuple[int, int, str, float]


class Mlflow(Source):
    format = "mlflow"

    def blocks(self) -> Iterator[Block]:
        self._read_meta()
        gathering, points = Gathering(), list[Point]()
        for name in self._names(METRICS):
            try:
                points += self._metric(name)
            except (OSError, Changed, Damaged) as error:
                self.fail(name, error)
        points.sort()
        for point in points:
            gathering.add(*point)
            self.about.seen(point[0] / 1e9)
        # Whole: the files were read one after the other, so a part of the points has no cursor.
        yield gathering.take()
        params = {name.removeprefix(f"{PARAMS}/"): self._text(name) for name in self._names(PARAMS)}
        self.about.settings = flatten({key: typed(value) for key, value in params.items()})
        for ours, names in {"env_id": ("env", "env_name", "environment"), "algo": ("algorithm",)}.items():
            if found := next((params[name] for name in names if params.get(name)), ""):
                self.about.settings.setdefault(ours, found)

    def _names(self, folder: str) -> list[str]:
        """The files below metrics, params or tags, whose names may contain slashes. Links are not followed."""
        found, waiting = list[str](), [folder]
        while waiting and len(found) < MOST_FILES:
            place = waiting.pop()
            try:
                entries = sorted(self.path(place).iterdir())
            except OSError:
                continue
            for entry in entries:
                if entry.is_symlink():
                    self.problem(f"{entry}: is a symbolic link, which is not followed")
                elif entry.is_dir():
                    waiting.append(f"{place}/{entry.name}")
                else:
                    found.append(f"{place}/{entry.name}")
        return sorted(found)[:MOST_FILES]

    def _metric(self, name: str) -> list[Point]:
        metric, points = name.removeprefix(f"{METRICS}/"), list[Point]()
        if not self.is_name(metric):
            return points
        for line, end in lines_after(self.path(name), self.position(name)):
            parts = line.decode(errors="replace").split()
            at, value = cell_number(parts[0]) if parts else None, cell_number(parts[1]) if len(parts) > 1 else None
            step = step_of(cell_number(parts[2])) if len(parts) > 2 else 0
            if at is None or value is None or step is None:
                self.problem(f"{self.path(name)}: the line before byte {end:,} is not a measurement")
                continue
            points.append((int(at * 1e6) if 0 < at < 4e12 else 0, step, metric, value))
            self.advance(name, end)
        return points

    def _text(self, name: str) -> str:
        try:
            return read_text(self.path(name))
        except OSError as error:
            self.fail(name, error)
            return ""

    def _read_meta(self) -> None:
        meta = read_yaml(self.path(META))
        for key in ("start_time", "end_time"):
            if at := number_of(meta.get(key)):
                self.about.seen(at / 1000)
        name = meta.get("run_name") or self._tag("mlflow.runName")
        self.about.name = str(name)[:120] if name else ""
        status = meta.get("status")
        status = STATUSES.get(status, 0) if isinstance(status, str) else status
        if status == FAILED:
            self.about.state, self.about.reason = "FAULTED", "MLflow recorded its status as FAILED"
        elif status == KILLED:
            self.about.state, self.about.reason = "CANCELLED", "MLflow recorded its status as KILLED"
        elif status != FINISHED:
            self.about.notes.append("its end is not recorded")
        artifacts = self.path("artifacts")
        if artifacts.is_dir():
            self.about.artifacts = {"mlflow": {"directory": str(artifacts)}}

    def _tag(self, name: str) -> str:
        return self._text(f"{TAGS}/{name}").strip() if self.path(f"{TAGS}/{name}").is_file() else ""
