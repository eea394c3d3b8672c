"""Operators as a user meets them: one command plays a CleanRL policy, an LLM, a person and chance on the same seeds.

The policy is trained for one rollout only, the model has random weights, and every process and server is real.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
MOSAIC = Path(sys.executable).with_name("mosaic")
WORKERS = ("eval", "llm", "cleanrl")
MISSING = [name for name in (*WORKERS, "llm-server") if not (REPO / f".venv-{name}/.ready").exists()]
SERVER = REPO / "workers/llm_worker/tests/server/serve.py"
GRID = "MiniGrid-Empty-5x5-v0"
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"make {' '.join(f'.venv-{name}/.ready' for name in MISSING)}"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def lab(shared_lab):
    (shared_lab.root.path / "envs").mkdir(exist_ok=True)
    for name in WORKERS:
        (shared_lab.root.path / "envs" / name).symlink_to(REPO / f".venv-{name}")
    return shared_lab


@pytest.fixture(scope="module")
def policy(lab):
    """A policy that was trained for two updates. It plays badly, but it is a real checkpoint."""
    settings = {"algo": "ppo", "env": GRID, "total_timesteps": 512, "num_envs": 2, "num_steps": 128, "seed": 1}
    run = lab.client.run("cleanrl", **settings, run_options={"name": "grid"})
    assert run.wait().state is RunState.TERMINATED
    return run.run_id


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The endpoint of a llama.cpp server with a tiny random model."""
    ready = tmp_path_factory.mktemp("server") / "ready.json"
    python = REPO / ".venv-llm-server/bin/python"
    words = [python, SERVER, "--port", "0", "--ready-file", ready, "--with-parent"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout.readline().startswith("http"), "the server did not start"
        yield json.loads(ready.read_text())["base_url"]
        server.terminate()


def episodes_of(lab, run):
    return lab.events(run, "episode")


def test_a_policy_a_model_a_person_and_chance_play_the_same_seeds(lab, policy, url):
    operators = ("me=human", f"ppo=rl:{policy}", "random", f"tiny=llm:tiny@{url}")
    words = [word for operator in operators for word in ("--operator", operator)]
    command = [MOSAIC, "eval", "--env", GRID, *words, "--seeds", "7-8", "--max-steps", "8"]
    terminal = Terminal(command, {"MOSAIC_HOME": str(lab.root.path)}, 120, 40)
    try:
        for _ in range(2):
            for number, key in enumerate("wwdww"):  # ahead, ahead, turn right, ahead, ahead
                terminal.waits_for(f"step {number}", 120)  # above the question on the same screen
                terminal.waits_for("me, lane 0: choose an action")
                terminal.types(key)
        code, output = terminal.ends(120)
    finally:
        terminal.close()

    assert code == 0
    assert re.search(r"me +2 .*100 %", output), output
    assert all(f"me and {name}: " in output for name in ("ppo", "random", "tiny"))
    run = lab.client.get_run("last")
    rows = episodes_of(lab, run)
    assert {(row["operator"], row["episode_seed"]) for row in rows} == {
        (name, seed) for name in ("me", "ppo", "random", "tiny") for seed in (7, 8)
    }
    assert [row["steps"] for row in rows if row["operator"] == "me"] == [5, 5]
    assert not any(row["failed"] for row in rows)
    assert not [line for line in lab.events(run, "lifecycle") if line["event"] == "observations_differ"]
    folder = Path(run.run_dir)
    assert json.loads((folder / "demonstrations/datasets.json").read_text())["datasets"][0]["episodes"] == 2
    assert (folder / "report.html").is_file()


@pytest.mark.slow  # numba compiles the game's view in a new environment: about a minute
def test_a_game_mixes_a_policy_a_model_and_chance(lab, policy, url, tmp_path):
    wrappers = ["mosaic_multigrid.wrappers.ImgObsWrapper", "eval_worker.wrappers.MiniGridActions"]
    players = {"agent_0": "ppo", "agent_1": "tiny", "agent_2": "chance"}
    script = {
        "env": {"id": "MosaicMultiGrid-C-IndAgObs-v1", "kwargs": {"view_size": 7}, "wrappers": wrappers},
        "operators": {
            "ppo": {"kind": "rl", "run": policy, "owns_env": False},
            "tiny": {"kind": "llm", "model": "tiny", "base_url": url},
            "chance": "random",
        },
        "lanes": [{"name": "balls", "agents": players}],
        "seeds": "0-1",
        "max_steps": 6,
    }

    _, rows = play(lab, tmp_path, script)

    assert {(row["agent_id"], row["operator"]) for row in rows} == set(players.items())
    assert [row["steps"] for row in rows] == [6] * 6


def test_a_board_game_of_a_model_against_chance_on_both_sides(lab, url, tmp_path):
    script = {
        "env": "pettingzoo/connect_four_v3",
        "operators": {"chance": "random", "tiny": {"kind": "llm", "model": "tiny", "base_url": url}},
        "lanes": [{"name": "game", "agents": {"player_0": "chance", "player_1": "tiny"}}],
        "rotate": True,
        "seeds": "0-1",
    }

    run, rows = play(lab, tmp_path, script)

    first_movers = {row["operator"] for row in rows if row["agent_id"] == "player_0"}
    assert first_movers == {"chance", "tiny"}
    assert len(rows) == 8  # two seeds, two sides, two agents
    summary = json.loads(Path(run.run_dir, "eval_summary.json").read_text())
    assert sum(summary["ratings"][name]["games"] for name in ("chance", "tiny")) == 8


def play(lab, folder, script):
    """The run of `mosaic eval FILE` and its episodes, none of which failed."""
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    environment = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    done = subprocess.run([MOSAIC, "eval", path], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    run = lab.client.get_run("last")
    rows = episodes_of(lab, run)
    assert not any(row["failed"] for row in rows)
    return run, rows
