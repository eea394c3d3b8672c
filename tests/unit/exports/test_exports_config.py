"""The config.json of an exported model, which people publish."""

from types import SimpleNamespace

from mosaic.exports.model import config_document


def test_an_exported_config_has_no_secret():
    settings = {"learning_rate": 0.1, "api_key": "sk-123", "extras.url": "https://me:hunter2@box/v1"}
    texts = dict.fromkeys(("run_id", "name", "worker_name", "algo", "env_id", "experiment"), "x")
    run = SimpleNamespace(**texts, seed=3, axes={"api_key": "sk-123", "seed": 3}, settings=settings)

    document = config_document(run, SimpleNamespace(path="/x/model.pt", step=5, is_best=True))

    assert document["settings"]["learning_rate"] == 0.1
    assert document["axes"]["seed"] == 3
    assert "sk-123" not in str(document)
    assert "hunter2" not in str(document)
