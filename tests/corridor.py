"""Installs fixtures/conductor.py as the worker `eval`, without a build: a venv with one package written into it."""

import shutil
import venv
from pathlib import Path

CONDUCTOR = Path(__file__).parent / "fixtures" / "conductor.py"


def install_corridor(home):
    place = home / "envs" / "eval"
    venv.create(place, symlinks=True, with_pip=False)
    site = next(place.glob("lib/python3*/site-packages"))
    (site / "eval_worker").mkdir()
    (site / "eval_worker" / "__init__.py").write_text("def get_worker_metadata():\n    return {}, {}\n")
    shutil.copy(CONDUCTOR, site / "eval_worker" / "cli.py")
    info = site / "eval_worker-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: eval-worker\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mosaic.workers]\neval = eval_worker:get_worker_metadata\n")
    (info / "top_level.txt").write_text("eval_worker\n")
