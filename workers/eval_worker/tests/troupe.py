"""A child for the tests: an operator or a player that misbehaves where it is told to.

python troupe.py '{"length": 5, "crash": [1, 2]}'      dies in its episode 1 at step 2 (each process counts from 0)
"""

import json
import os
import sys
import time

from mosaic_sdk.interactive import serve
from mosaic_sdk.player import CommandError, Player, Step


class Actor(Player):
    def __init__(self, told):
        self.told = told
        self.episode = -1
        self.steps = 0
        self.seed = 0

    def describe(self):
        return {"env_id": "troupe", "policy": "told"}

    def reset(self, seed, options):
        self.begin(seed)
        return {"first_observation": self.told.get("digest", f"{seed:016x}"), "text": f"seed {seed}"}

    def init_agent(self, agent_id, seed):
        self.begin(seed)

    def begin(self, seed):
        self.episode, self.steps, self.seed = self.episode + 1, 0, seed
        if "refuse" in self.told:
            raise CommandError(self.told["refuse"])
        if "die_unless" in self.told and not os.path.exists(self.told["die_unless"]):
            print("no such file", file=sys.stderr)
            os._exit(3)

    def misbehave(self):
        here = [self.seed, self.steps]
        if self.told.get("crash") == here and self.is_first_time("crash"):
            print("asked to crash", file=sys.stderr)
            os._exit(7)
        if self.told.get("forfeit") == here:
            raise CommandError("No legal action after 3 tries.", kind="forfeit")
        if self.told.get("hang") == here and self.is_first_time("hang"):
            time.sleep(3600)
        if "gate" in self.told and here == self.told["gate"]["at"]:
            while not os.path.exists(self.told["gate"]["file"]):
                time.sleep(0.01)

    def is_first_time(self, what):
        """A mark on disk: the process that is started again plays on."""
        path = f"{self.told['mark']}.{what}"
        if os.path.exists(path):
            return False
        open(path, "w").close()
        return True

    def step(self, action):
        self.misbehave()
        chosen = (self.seed + self.steps) % 2
        self.steps += 1
        time.sleep(self.told.get("pause_s", 0))
        return Step(chosen, float(chosen + 1), self.steps >= self.told.get("length", 4) + self.seed % 2, False)

    def select_action(self, request):
        self.misbehave()
        self.steps += 1
        return self.told.get("action", (self.seed + self.steps) % 2)


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    sys.exit(serve(lambda: Actor(told), run_id="", first_seed=0))
