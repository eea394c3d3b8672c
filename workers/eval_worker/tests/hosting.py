"""An env host for the tests: in this process, or as a process of its own."""

import json
import random
import subprocess
import sys

from eval_worker.host import Host
from mosaic_sdk.emit import to_json
from mosaic_sdk.operators import spaces


class Asked:
    """A host in this process. Answers go through JSON, as over a pipe."""

    def __init__(self, env, **config):
        self.host = Host({"run_id": "R1", "lane": "a", "env": env, **config})

    def ask(self, cmd, **fields):
        (answer,) = self.host.answer(json.dumps({"cmd": cmd, **fields}))
        return json.loads(to_json(answer))

    def reset(self, seed=3, **options):
        ready = self.ask("reset", seed=seed, options=options)
        self.spaces = ready.get("spaces")
        return ready

    def step(self, **actions):
        return self.ask("step", actions=actions)

    def play(self, message, rng=None, steps=1000):
        """Random legal actions, from `message` on; every answer."""
        rng, answers = rng or random.Random(1), []
        while message.get("turn") and len(answers) < steps:
            chosen = {
                agent: spaces.sample(self.spaces[agent]["action"], rng, message["views"][agent]["action_mask"])
                for agent in message["turn"]
            }
            message = self.ask("step", actions=chosen)
            answers.append(message)
        return answers


def open_host(folder, env, **config):
    path = folder / "host.json"
    path.write_text(json.dumps({"run_id": "R1", "lane": "a", "env": env, **config}))
    return subprocess.Popen(
        [sys.executable, "-m", "eval_worker", "--host", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def talk(process, *commands):
    """Send commands and close its stdin; the answers, its stderr and its exit code."""
    out, err = process.communicate("".join(json.dumps(command) + "\n" for command in commands), timeout=60)
    return [json.loads(line) for line in out.splitlines()], err, process.returncode
