"""Paths of one machine in what is sent to another."""

import json

from mosaic.model.node_paths import CODE, ROOT, replace_paths, settle


def test_paths_are_replaced_where_they_are_whole():
    document = {"a": "/home/me/m", "b": "/home/me/m/runs/x", "c": "/home/me/m-old", "d": "/lib:/home/me/m/envs/e:/x"}
    moves = {"/home/me/m": ROOT, "/home/me/m/envs": f"{ROOT}/elsewhere"}

    found = json.loads(replace_paths(json.dumps(document, ensure_ascii=False), moves))

    assert found["a"] == ROOT
    assert found["b"] == f"{ROOT}/runs/x"
    assert found["c"] == "/home/me/m-old"
    assert found["d"] == f"/lib:{ROOT}/elsewhere/e:/x"


def test_a_node_puts_in_its_own():
    text = json.dumps({"a": f"{ROOT}/x", "b": f"{CODE}/y"})

    assert json.loads(settle(text, '/da"ta', "/code")) == {"a": '/da"ta/x', "b": "/code/y"}
