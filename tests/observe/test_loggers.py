"""Loggers: TensorBoard's writers, W&B, MLflow, TensorFlow; and what is saved."""

import json
import sys

import pytest

WRITERS = """
import hashlib, json
import torch
from safetensors.torch import save_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter as Other
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(1)
net = torch.nn.Linear(3, 1)
step = torch.optim.Adam(net.parameters())
with SummaryWriter("torch") as writer, Other("x") as other:
    writer.add_hparams({"lr": 0.1, "api_key": "abc"}, {})
    for n in range(5):
        loss = net(torch.ones(3)).pow(2).sum()
        step.zero_grad(); loss.backward(); step.step()
        writer.add_scalar("loss", loss, n)
        writer.add_scalars("both", {"a": n, "b": torch.tensor(2.0 * n)}, n)
        other.add_scalar("other", float(n), global_step=n)
        other.add_scalar("loss", loss.item(), n)
    writer.add_scalar("without_step", 7)
    writer.add_scalar("without_step", 8)
    writer.add_text("text", "words")
torch.save(net.state_dict(), "net.pt")
save_file(net.state_dict(), "net.safetensors")
torch.save(net.state_dict(), "/dev/null")
print(hashlib.sha256(net.weight.detach().numpy().tobytes()).hexdigest())
for folder in ("torch", "x"):
    events = EventAccumulator(folder); events.Reload()
    print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


def test_writers_write_what_they_wrote_and_each_value_is_told_once(run, tmp_path):
    bare = run(WRITERS, observed=False)
    folder = tmp_path / "run"
    for path in folder.iterdir():
        path.rename(tmp_path / path.name)
    observed = run(WRITERS)

    assert observed.said == bare.said
    assert observed.err == bare.err
    expected = {(tag, step) for line in bare.said[1:] for tag, points in json.loads(line).items() for step, _ in points}
    expected |= {(f"both/{key}", n) for key in "ab" for n in range(5)} | {("without_step", 1)}
    told = [(name, step) for name, step, _ in observed.metrics]
    assert sorted(told) == sorted(expected)
    assert ("both/b", 3, 6.0) in observed.metrics
    settings = [payload["values"] for payload in observed.events("settings")]
    assert settings == [{"lr": 0.1, "api_key": "(not shown)"}]
    paths = [payload["path"] for payload in observed.events("checkpoint_saved")]
    assert paths == [str(folder / "net.pt"), str(folder / "net.safetensors")]
    assert observed.observing == {
        ("metrics", "torch.utils.tensorboard.SummaryWriter"),
        ("metrics", "tensorboardX.SummaryWriter"),
        ("settings", "torch.utils.tensorboard.SummaryWriter"),
        ("checkpoints", "torch.save"),
        ("checkpoints", "safetensors.torch.save_file"),
    }


WANDB = """
import sys, wandb
run = wandb.init(project="p", mode=sys.argv[1], config={"lr": 0.1, "layers": [1, 2]})
wandb.log({"loss": 1.0, "note": "text", "nested": {"a": 2}})
wandb.config.update({"late": True})
run.log({"loss": 0.5})
wandb.log({"half": 1}, commit=False)
wandb.log({"other": 2})
wandb.log({"at": 3.0}, step=70)
wandb.log({"x": 1.5, "global_step": 900})
print(dict(wandb.config))
wandb.finish()
"""


@pytest.mark.parametrize("mode", ["offline", "disabled"])
def test_wandb(run, mode):
    observed = run(WANDB, mode, WANDB_SILENT="true")

    assert observed.said == ["{'lr': 0.1, 'layers': [1, 2], 'late': True}"]
    assert observed.metrics == [
        ("loss", 0, 1.0),
        ("nested.a", 0, 2.0),
        ("loss", 1, 0.5),
        ("half", 2, 1.0),
        ("other", 2, 2.0),
        ("at", 70, 3.0),
        ("x", 900, 1.5),
        ("global_step", 900, 900.0),
    ]
    values = [payload["values"] for payload in observed.events("settings")]
    assert values == [{"lr": 0.1, "layers": "[1, 2]"}, {"lr": 0.1, "layers": "[1, 2]", "late": True}]
    assert observed.observing == {("metrics", "wandb.log"), ("settings", "wandb.config")}


MLFLOW = """
import mlflow
mlflow.set_tracking_uri("file:mlruns")
with mlflow.start_run():
    mlflow.log_param("lr", 0.1)
    mlflow.log_metric("loss", 1.5, step=3)
    mlflow.log_metrics({"a": 1.0, "b": 2.0}, step=4)
    mlflow.log_metric("loss", 1.0)
"""


def test_mlflow(run):
    observed = run(MLFLOW, MLFLOW_ALLOW_FILE_STORE="true")

    assert observed.metrics == [("loss", 3, 1.5), ("a", 4, 1.0), ("b", 4, 2.0), ("loss", 0, 1.0)]
    assert observed.events("settings") == [{"by": "mlflow.log_param", "values": {"lr": 0.1}}]


def test_the_hook_of_tensorflow_is_in_the_function_that_tf_summary_scalar_is(run):
    """Only that the function is replaced and its values are read: see docs/howto/observe.md."""
    script = """
import types, importlib.util, sys, pathlib
site = pathlib.Path("site/tensorboard/plugins/scalar"); site.mkdir(parents=True, exist_ok=True)
for folder in (site, site.parent, site.parent.parent): (folder / "__init__.py").write_text("")
(site / "summary_v2.py").write_text('''
import types
class Tensor:
    def __init__(self, value): self.value = value
    def numpy(self): return self.value
class Symbol: pass
tf = types.SimpleNamespace(summary=types.SimpleNamespace(experimental=types.SimpleNamespace(get_step=lambda: 8)))
def scalar(name, data, step=None, description=None): return True
''')
sys.path.insert(0, "site")
from tensorboard.plugins.scalar.summary_v2 import Symbol, Tensor, scalar
print(scalar("a", 1.5, 2), scalar("b", Tensor(2.5), step=Tensor(3)), scalar("c", 1), scalar("d", Symbol(), 1))
"""
    observed = run(script, python=sys.executable)

    assert observed.said == ["True True True True"]
    assert observed.metrics == [("a", 2, 1.5), ("b", 3, 2.5), ("c", 8, 1.0)]
