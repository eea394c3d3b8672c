"""Events of an evaluation, as the client receives them."""

import itertools
import json

from mosaic.client.events import Episode, Lifecycle, Step

SEQUENCE = itertools.count(1)
AT_NS = 1_000_000_000_000


def said(event, at_s=1000.0, **payload):
    return Lifecycle(next(SEQUENCE), int(at_s * 1e9), event, json.dumps(payload).encode(), b"")


def step(lane=0, index=0, agent="ppo", reward=0.5, episode=0, **extra):
    return Step(next(SEQUENCE), AT_NS, index, reward, lane, agent, episode, False, False, json.dumps(extra).encode())


def episode(lane=0, index=0, total=1.0, agent="ppo", at_s=1000.0, **extra):
    text = json.dumps(extra).encode()
    return Episode(next(SEQUENCE), int(at_s * 1e9), index, total, 5, lane, agent, True, False, text)


def started(*names, seeds=(0, 1), mode="manual", **more):
    lanes = [{"index": index, "name": name, "operator": name, **more} for index, name in enumerate(names)]
    return said("evaluation_started", env_id="Corridor", mode=mode, lanes=lanes, seeds=list(seeds))


def asked(lane=0, request=1, agent="me", operator="me", at_s=1000.0, **more):
    actions = [{"value": 0, "name": "left", "key": "a"}, {"value": 1, "name": "right", "key": None, "keys": ["d"]}]
    payload = {"lane": lane, "agent_id": agent, "operator": operator, "request": request, "actions": actions, **more}
    return said("action_requested", at_s, **payload)
