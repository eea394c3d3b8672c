"""The settings of a cluster: what is accepted, and what an error says."""

import pytest

from mosaic.engines.cluster import Cluster, cluster_names, load_cluster, split_place
from mosaic.engines.slurm import SlurmRefused, SlurmSilent, _failure
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot


@pytest.fixture
def write(tmp_path):
    root = StateRoot(tmp_path)
    root.clusters.mkdir()

    def write(text, name="slurm"):
        (root.clusters / f"{name}.toml").write_text(text)
        return root

    return write


def test_slurm_needs_no_file(tmp_path):
    assert load_cluster(StateRoot(tmp_path), "slurm") == Cluster("slurm")


def test_settings_are_read(write):
    root = write('partition = "gpu"\nsbatch = ["--exclude=n7"]\nmost_jobs = 3\n', "lab")

    assert load_cluster(root, "lab") == Cluster("lab", partition="gpu", sbatch=("--exclude=n7",), most_jobs=3)
    assert cluster_names(root) == ["lab", "ray", "slurm"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('partitions = "gpu"', "no setting 'partitions'"),
        ("partition = 3", "'partition' has the wrong type"),
        ('sbatch = "--exclude=n7"', "'sbatch' has the wrong type"),
        ("most_jobs = 0", "no run would ever start"),
        ("most_jobs = -1", "'most_jobs' has the wrong type: -1. Write a whole number"),
        ("most_jobs = true", "'most_jobs' has the wrong type"),
        ('prolog = ["a\\nb"]', "'prolog' has the wrong type"),
        ('engine = "pbs"', "'pbs' is not known. Write slurm or ray"),
        ("partition = \n", r"cannot be used: Invalid value \(at line 1"),
        ('account = "lab"\n\n time= "24x"', r"slurm\.toml, line 3: 'time': '24x' is not a valid duration"),
        ('reach = "login"', "'login' is not an address. Write HOST:PORT"),
        ('headers = ["X-Lab me"]', "write each header as 'NAME: VALUE'"),
        ('address = "head:8265"', "does not begin with http://"),
        ('sbatch = ["--exclude=n7", "--job-name=mine"]', "MOSAIC itself decides --job-name of its jobs"),
        ('sbatch = ["-a1-3"]', "MOSAIC itself decides -a1-3 of its jobs"),
        ('prolog = ["#SBATCH --array=1-3"]', "into 'sbatch'"),
    ],
)
def test_what_cannot_be_used_is_named(write, text, words):
    with pytest.raises(BadConfig, match=words):
        load_cluster(write(text), "slurm")


def test_a_setting_may_be_empty_or_off(write):
    text = 'time = ""\nreach = ""\naddress = ""\nsbatch = []\nstop_after_lost_contact_s = 0\n'

    assert load_cluster(write(text), "slurm") == Cluster("slurm")


def test_an_unknown_cluster_is_refused_with_those_that_are_known(write):
    with pytest.raises(BadConfig, match=r"no cluster 'mars'\. Known: lab, ray, slurm"):
        load_cluster(write("", "lab"), "mars")


@pytest.mark.parametrize(
    ("on", "parts"), [("slurm", ("slurm", "")), ("slurm:gpu", ("slurm", "gpu")), ("lab:a,b", ("lab", "a,b"))]
)
def test_a_place_is_a_cluster_and_a_partition(on, parts):
    assert split_place(on) == parts


@pytest.mark.parametrize("on", ["", ":gpu", "slurm:", "../x", "slurm:a b", "slurm:--wrap", "slurm:$(x)", "a/b"])
def test_anything_else_is_refused(on):
    with pytest.raises(BadConfig, match="CLUSTER or CLUSTER:PARTITION"):
        split_place(on)


@pytest.mark.parametrize(
    "message",
    [
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "Unexpected message received for job 1",
        "error: If munged is up, restart with --num-threads=10",
    ],
)
def test_an_unreachable_controller_is_silence_and_not_a_refusal(message):
    assert isinstance(_failure("sbatch", message), SlurmSilent)


def test_other_failures_are_refusals():
    refused = _failure("sbatch", "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job failed")

    assert isinstance(refused, SlurmRefused)
    assert str(refused) == "sbatch: invalid partition specified: x; Batch job failed."
