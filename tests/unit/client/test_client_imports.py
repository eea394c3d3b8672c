"""What a command must not import: each module costs every command some milliseconds."""

import subprocess
import sys

LATER = ("mosaic.client.evaluation", "mosaic.client.importing", "mosaic.imports.source", "mosaic.present")
LISTS = f"import mosaic.client, sys; print([name for name in {LATER!r} if name in sys.modules])"
USES = "from mosaic.client import AsyncEvaluation, Evaluation, LaneState, TrainerClient; print(Evaluation.__name__)"


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_client_imports_evaluations_and_imports_only_when_they_are_used():
    assert printed(LISTS) == "[]"
    assert printed(USES) == "Evaluation"
