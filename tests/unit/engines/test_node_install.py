"""The jobs that install on nodes: what is asked of Ray, what is said of their logs, and how each node ended."""

import json
import time

import pytest

from mosaic.engines.cluster import Cluster
from mosaic.engines.node_install import PREFIX, install_on, nodes_for
from mosaic.engines.ray import RayJob, RayNode, RaySilent, _node
from mosaic.model.errors import MosaicError

DONE = "mosaic: " + json.dumps({"name": "toy", "is_new": True}) + "\n"


class FakeRay:
    """Every look at its jobs is the next one of a node's script: (status, its log so far)."""

    def __init__(self, *scripts, nodes=(), old=()):
        self.cluster = Cluster("ray", engine="ray")
        self._scripts, self._nodes, self._old = [list(script) for script in scripts], nodes, old
        self.submitted, self.stopped, self.deleted, self.silent = [], [], [], 0

    def nodes(self):
        return list(self._nodes)

    def ensure_package(self, name, content):
        return f"gcs://{name}"

    def submit(self, spec):
        self.submitted.append(spec)

    def jobs(self):
        if self.submitted and self.silent:
            self.silent -= 1
            raise RaySilent("no answer")
        found = list(self._old)
        for spec, script in zip(self.submitted, self._scripts, strict=False):
            self._now = script.pop(0) if len(script) > 1 else script[0]
            setattr(self, spec.name, self._now[1])
            found += [RayJob(spec.name, self._now[0], "it died")] if self._now[0] else []
        return found

    def log(self, name):
        return getattr(self, name)

    def stop(self, name):
        self.stopped.append(name)

    def delete(self, name):
        self.deleted.append(name)


def node(name, address, *resources, state="alive"):
    return RayNode(name, state, 4, 0, 0, 0, 1, address, frozenset(resources))


A, B = node("a", "10.0.0.1"), node("b", "10.0.0.2")


def install(ray, nodes=(A, B)):
    said = []
    return install_on(ray, nodes, ("p.zip", b""), "exec x", lambda *line: said.append(line), lambda _: None), said


def test_one_job_for_each_node_is_sent_there_and_needs_no_cpu():
    ray = FakeRay([("SUCCEEDED", DONE)], [("SUCCEEDED", DONE)])

    done, _ = install(ray)

    assert [(spec.resource, spec.cpus, spec.entrypoint) for spec in ray.submitted] == [
        ("node:10.0.0.1", 0, "exec x"),
        ("node:10.0.0.2", 0, "exec x"),
    ]
    assert not [spec for spec in ray.submitted if spec.name.startswith("mosaic-")]  # those are runs
    assert [(one.node, one.problem, one.result["name"]) for one in done] == [("a", "", "toy"), ("b", "", "toy")]
    assert ray.stopped == []


def test_each_line_of_progress_is_said_once_and_with_its_node():
    first, second = "mosaic: Creating …\n", "noise\nmosaic: Installing …\nmosaic: Chec"
    ray = FakeRay([("PENDING", "x"), ("RUNNING", first), ("RUNNING", first + second), ("SUCCEEDED", first + DONE)])

    _, said = install(ray, [A])

    assert said == [("a", "Creating …"), ("a", "Installing …")]


def test_a_node_that_fails_is_named_with_the_last_lines_and_the_others_go_on():
    problem = "mosaic: " + json.dumps({"problem": "the disk is full"}) + "\n"
    ray = FakeRay([("FAILED", "error: no space\n" + problem)], [("RUNNING", ""), ("RUNNING", ""), ("SUCCEEDED", DONE)])

    done, _ = install(ray)

    assert [(one.node, one.problem) for one in done] == [("a", "the disk is full"), ("b", "")]
    assert done[0].lines[0] == "error: no space"


@pytest.mark.parametrize(("status", "words"), [("FAILED", "its job has ended: it died"), ("", "no longer knows it")])
def test_a_job_that_ends_without_an_answer_is_a_failure(status, words):
    done, _ = install(FakeRay([(status, "Killed\n")]), [A])

    assert words in done[0].problem


def test_a_dashboard_that_is_silent_for_a_while_changes_nothing():
    ray = FakeRay([("SUCCEEDED", DONE)])
    ray.silent = 3

    done, _ = install(ray, [A])

    assert done[0].problem == ""


def test_an_interrupted_install_stops_its_jobs():
    ray = FakeRay([("RUNNING", "")], [("RUNNING", "")])

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install_on(ray, [A, B], ("p.zip", b""), "x", lambda *_: None, interrupt)

    assert ray.stopped == [spec.name for spec in ray.submitted]


def test_old_jobs_leave_rays_list_and_others_stay():
    now = int(time.time())
    names = {"old": f"{PREFIX}{now - 9999}-a-0", "new": f"{PREFIX}{now - 9}-b-0", "live": f"{PREFIX}{now - 9999}-c-0"}
    old = [RayJob(name, "RUNNING" if key == "live" else "SUCCEEDED") for key, name in names.items()]
    ray = FakeRay([("SUCCEEDED", DONE)], old=[*old, RayJob("mosaic-01-1", "SUCCEEDED")])

    install(ray, [A])

    assert ray.deleted == [names["old"]]


def test_nodes_of_one_name_are_told_apart():
    ray = FakeRay([("SUCCEEDED", DONE)], [("SUCCEEDED", DONE)])

    done, _ = install(ray, [A, node("a", "10.0.0.9")])

    assert [one.node for one in done] == ["a (10.0.0.1)", "a (10.0.0.9)"]


def test_only_nodes_that_are_up_and_have_the_resource_are_chosen():
    # As the dashboard spells it: in camel case.
    found = _node({"hostname": "c", "raylet": {"state": "ALIVE", "resourcesTotal": {"bigGpu": 1.0, "CPU": 2.0}}}, {})
    ray = FakeRay(nodes=[A, node("dead", "10.0.0.3", "bigGpu", state="dead"), found])

    assert [each.name for each in nodes_for(ray, "big_gpu")] == ["c"]
    assert [each.name for each in nodes_for(ray, "")] == ["a", "c"]
    with pytest.raises(MosaicError, match="has no node that has the resource 'tpu'"):
        nodes_for(ray, "tpu")
