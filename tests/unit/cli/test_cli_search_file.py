"""A search in a file: what is read from it, and what is refused."""

import pytest

from mosaic.cli.experiment_file import read_file
from mosaic.cli.main import main
from mosaic.cli.search_file import is_file, read_search
from mosaic.model.errors import MosaicError

WHOLE = """
name: lr
worker: cleanrl@jax
base: {algo: ppo, extras.algo_params.gamma: 0.9}
space:
  learning_rate: log:1e-5:1e-2
  num_steps: [64, 128]
  anneal: [true, false]
trials: 7
direction: minimize
sampler_options: {n_startup_trials: 2}
seeds: 0-2
sampler_seed: 5
options: {cpus: 0.5, tags: [demo]}
"""


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "search.yaml"
        path.write_text(text)
        return path

    return write


def test_a_file_describes_a_whole_search(file):
    search = read_search(file(WHOLE))

    assert (search.name, search.worker) == ("lr", "cleanrl@jax")
    assert search.settings == {"algo": "ppo", "extras": {"algo_params": {"gamma": 0.9}}}
    assert search.space == {
        "learning_rate": "log:1e-5:1e-2",
        "num_steps": "choice:64,128",
        "anneal": "choice:true,false",
    }
    assert search.options == {
        "trials": 7,
        "direction": "minimize",
        "sampler_options": {"n_startup_trials": 2},
        "seeds": [0, 1, 2],
        "seed": 5,
    }
    assert (search.of_trials.cpus, search.of_trials.tags) == (0.5, ["demo"])


def test_the_name_is_that_of_the_file_or_of_the_command_line(file):
    path = file("worker: toy\nspace: {steps: int:1:9}")

    assert read_search(path).name == "search"
    assert read_search(path, "other").name == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("worker: toy\ntrails: 3\nspace: {a: int:1:2}", "there is no key 'trails'. Did you mean 'trials'"),
        ("worker: toy", "nothing to search"),
        ("space: {a: int:1:2}", "the worker is missing"),
        ("worker: toy\nspace: [a]", "space: must have keys and values"),
        ("worker: toy\nspace: {a: int:1:2}\nseeds: x", "not a list of seeds"),
        (
            "worker: toy\nspace: {a: int:1:2}\noptions: {cpu: 1}",
            ": options.cpu: there is no such option. Did you mean 'cpus'",
        ),
        ("worker: toy\nspace: {a: int:9:1}", ": space: a: the lowest value must be less"),
        ("[", "is not valid YAML: line 1, column 2: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(file, text, said):
    with pytest.raises(MosaicError, match=r"search\.yaml") as found:
        read_search(file(text))

    assert said in str(found.value)


def test_a_search_is_not_run_as_a_grid(file):
    with pytest.raises(MosaicError, match=r"describes a search. Start it with: mosaic search .*search.yaml"):
        read_file(file(WHOLE))


def test_a_grid_is_not_searched(file):
    with pytest.raises(MosaicError, match=r"describes an experiment. Start it with: mosaic experiment run .*search"):
        read_search(file("worker: toy\naxes: {a: [1, 2]}\n"))


def test_a_word_with_an_ending_or_a_slash_is_a_file():
    assert [is_file(word) for word in ("lr.yaml", "a/b", "x.json", "toy", "cleanrl@jax")] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(("words", "said"), [(["--trials", "4"], "--trials"), (["steps=1"], "key=value")])
def test_options_that_the_file_may_contradict_are_refused(file, capsys, words, said):
    assert main(["search", str(file(WHOLE)), *words]) == 2

    assert f"write {said} into" in capsys.readouterr().err
