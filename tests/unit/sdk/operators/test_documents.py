"""The how-to pages on scripts and operators are complete, and their examples run."""

import re
import subprocess
import sys
from pathlib import Path

from mosaic_sdk.operators import specs
from mosaic_sdk.operators.script import EvalScript

HOWTO = Path(__file__).parents[4] / "docs" / "howto"


def keys_of(page, heading):
    """The first column of the table below a heading."""
    section = (HOWTO / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_the_reference_has_every_key_of_a_script():
    assert set(keys_of("evaluation-script.md", "Keys")) == {*EvalScript._fields, "episodes"}
    assert keys_of("evaluation-script.md", "env") == list(specs.parse_env("x"))
    assert sorted(keys_of("evaluation-script.md", "operators")) == sorted(specs.KINDS)


def test_the_example_of_an_operator_runs(tmp_path):
    text = (HOWTO / "operators.md").read_text()
    (tmp_path / "sweeper.py").write_text(re.search(r"```python sweeper.py\n(.*?)```", text, re.DOTALL)[1])
    (program,) = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "sweeper.py" in one]

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (done.stdout.split(), done.stderr) == (["3", "0", "1", "1"], "")
