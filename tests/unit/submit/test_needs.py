import pytest

from mosaic.model.machine import Machine
from mosaic.model.run import Limits, ResourceRequest
from mosaic.submit.config import read_config
from mosaic.submit.needs import DEFAULT_MEMORY_MB, with_worker_needs

MACHINE = Machine(4.0, 8192)
KEYS = {"rl": {"run": "last"}, "worker": {"worker": "toy"}, "llm": {}}  # that an operator of each kind needs


def needs(capabilities, machine=MACHINE, **payload):
    config = read_config({"metadata": {"worker": {"module": "toy_worker.cli"}}, "payload": payload})
    return with_worker_needs(config, capabilities, machine)


def test_a_worker_sets_the_limit_of_its_runs_unless_the_config_does():
    assert needs({"spin_s": 7200}).limits.spin_s == 7200
    assert needs({"spin_s": 0}).limits.spin_s == 0
    assert needs({"spin_s": 7200}, limits={"spin_s": 60}).limits.spin_s == 60
    assert needs({"spin_s": 7200}, limits={"spin_s": 0}).limits.spin_s == 0


def test_a_run_requests_one_cpu_and_its_workers_memory_unless_the_config_says_otherwise():
    worker = {"estimated_memory_mb": 2048}

    assert needs(worker).resources == ResourceRequest(1.0, 2048)
    assert needs({}).resources == ResourceRequest(1.0, DEFAULT_MEMORY_MB)
    assert needs(worker, resources={"cpus": 0, "memory_mb": 0}).resources == ResourceRequest(0.0, 0)
    assert needs(worker, resources={"cpus": 2.5, "memory_mb": 100}).resources == ResourceRequest(2.5, 100)


def test_a_default_is_never_more_than_the_machine_has():
    assert needs({"estimated_memory_mb": 65536}, Machine(0.5, 1024)).resources == ResourceRequest(0.5, 1024)


def operators_need(kinds, machine=MACHINE, **resources):
    operators = {f"{kind}{place}": {"kind": kind, **KEYS[kind]} for place, kind in enumerate(kinds)}
    metadata = {"worker": {"module": "eval_worker.cli"}, "operators": operators}
    config = read_config({"metadata": metadata, "payload": {"resources": resources}})
    worker = {"estimated_memory_mb": 1000}
    return with_worker_needs(config, {"estimated_memory_mb": 100}, machine, [worker] * len(kinds)).resources


def test_an_evaluation_requests_a_cpu_for_each_operator_that_computes_here():
    roomy = Machine(64.0, 65536)

    assert operators_need(["rl", "worker", "llm"], roomy) == ResourceRequest(3.0, 3100)
    assert operators_need([], roomy) == ResourceRequest(1.0, 100)
    assert operators_need(["rl", "rl"], roomy, cpus=0.5, memory_mb=64) == ResourceRequest(0.5, 64)


def test_an_evaluation_requests_at_most_half_of_the_cpus():
    assert operators_need(["rl"] * 7).cpus == 2.0
    assert operators_need(["rl"] * 7, Machine(1.0, 8192)).cpus == 1.0
    assert operators_need(["rl"] * 7, Machine(0.5, 8192)).cpus == 0.5
    assert operators_need(["rl"] * 20).memory_mb == 8192


@pytest.mark.parametrize("nonsense", [None, -1, True, "long", float("nan"), 1e300])
def test_an_invalid_capability_is_ignored(nonsense):
    found = needs({"spin_s": nonsense, "estimated_memory_mb": nonsense})

    assert (found.limits, found.resources) == (Limits(), ResourceRequest(1.0, DEFAULT_MEMORY_MB))
