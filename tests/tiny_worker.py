"""The smallest workers, written for one test: they install quickly and need nothing from the index."""

import json
import shutil
from pathlib import Path

BACKEND = Path(__file__).parent / "fixtures" / "tiny_build.py"
CLI = """
import json, sys
{imports}
def emit(**line):
    print(json.dumps(line), flush=True)
def main():
    emit(event="run_started")
    emit(event_type="metric", name="version", value=float({version}), step=0)
    {body}
    emit(event="run_completed")
if __name__ == "__main__":
    main()
"""
DESCRIBES = "def get_worker_metadata():\n    return {'name': 'Test'}, {'worker_type': 'test'}\n"


def write_tiny_worker(
    parent,
    name="tiny",
    package="",
    needs=(),
    init=DESCRIBES,
    points=True,
    folder="",
    imports="",
    body="pass",
    version="1",
):
    """Writes a worker's folder below `parent` and returns its path. `version` is the value of its one metric."""
    module = f"{name}_worker"
    place = parent / (folder or module)
    shutil.rmtree(place, ignore_errors=True)
    (place / module).mkdir(parents=True)
    shutil.copy(BACKEND, place)
    (place / module / "__init__.py").write_text(init)
    (place / module / "cli.py").write_text(CLI.format(imports=imports, body=body, version=version))
    named = f'[project.entry-points."mosaic.workers"]\n{name} = "{module}:get_worker_metadata"\n' if points else ""
    (place / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "tiny_build"\nbackend-path = ["."]\n'
        f'[project]\nname = "{package or name + "-worker"}"\nversion = "1.0"\n'
        f"dependencies = {json.dumps(list(needs))}\n{named}"
    )
    return place
