"""Crafter in words. Progress is the share of its 22 achievements that were unlocked."""

from typing import Any

import crafter

from balrog_worker.actions import Actions
from balrog_worker.games.game import Game, View, compass

ACHIEVEMENTS = 22
_SMALL, _LARGE = (
    (64, 64),
    (256, 256),
)  # every step renders the small picture; the large one is rendered when it is shown
_VITALS = ("health", "food", "drink", "energy")
_NOT_LISTED = ("grass", "sand", "path", "player")
ACTIONS = {  # in the order of the library's own
    "noop": "do nothing",
    "move west": "step west, or turn to face west if something is there",
    "move east": "step east, or turn to face east if something is there",
    "move north": "step north, or turn to face north if something is there",
    "move south": "step south, or turn to face south if something is there",
    "do": "use what you face: collect it, drink it, eat it or attack it",
    "sleep": "sleep to regain energy",
    "place stone": "needs stone",
    "place table": "needs wood",
    "place furnace": "needs stone, beside a table",
    "place plant": "needs a sapling, on grass",
    "make wood pickaxe": "needs wood, beside a table",
    "make stone pickaxe": "needs wood and stone, beside a table",
    "make iron pickaxe": "needs wood, coal and iron, beside a table and a furnace",
    "make wood sword": "needs wood, beside a table",
    "make stone sword": "needs wood and stone, beside a table",
    "make iron sword": "needs wood, coal and iron, beside a table and a furnace",
}
_GOAL = (
    "You play Crafter, a survival game on a map of square cells, seen from above.\n"
    "Unlock as many of its 22 achievements as you can, and stay alive: collect coal, diamond, drink, iron, sapling, "
    "stone and wood; defeat a skeleton and a zombie; eat a cow and a ripe plant; make a pickaxe and a sword of wood, "
    "stone and iron; place a furnace, a plant, stone and a table; sleep and wake up again."
)


class Crafter(Game):
    default = noop = "noop"
    goal = _GOAL

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.actions = Actions(ACTIONS)
        self._env: Any = None
        self._unlocked: list[str] = []

    def reset(self, *, seed: int) -> tuple[View, dict[str, Any]]:
        self._env = crafter.Env(area=(64, 64), view=(9, 9), size=_SMALL, length=self.max_steps, seed=seed)
        self._env.reset()
        self.progress, self._unlocked = 0.0, []
        return describe(self._env), {}

    def step(self, action: str) -> tuple[View, float, bool, bool, dict[str, Any]]:
        _, reward, over, info = self._env.step(self.actions.names.index(action))
        self._unlocked = sorted(name for name, count in info["achievements"].items() if count > 0)
        self.progress = 100.0 * len(self._unlocked) / ACHIEVEMENTS
        is_dead = info["discount"] == 0
        return describe(self._env), float(reward), is_dead, bool(over) and not is_dead, {}

    def render(self) -> Any:
        # At night a picture draws random numbers from the world: a watched episode would be another one.
        chance = self._env._world.random
        state = chance.get_state()
        picture = self._env.render(_LARGE)
        chance.set_state(state)
        return picture

    def details(self) -> dict[str, Any]:
        return {"achievements": self._unlocked}


def describe(env: Any) -> View:
    """The nearest of each kind in the part of the map that a player sees, what is in front, and the inventory."""
    player = env._player
    nearest = _nearest(env)
    seen = [f"{name}: {compass(east, south)}" for name, (_, east, south) in sorted(nearest.items())]
    facing = compass(int(player.facing[0]), int(player.facing[1])).removeprefix("1 step ")
    material, thing = env._world[player.pos + player.facing]
    front = type(thing).__name__.lower() if thing is not None else material or "the edge of the map"
    state = ["You sleep, and wake up when you have rested."] if player.sleeping else []
    lines = [*state, "You see:", *(seen or ["nothing but open ground"]), f"You face {facing}: {front}."]
    return View("\n".join(lines), _belongings(player.inventory))


def _nearest(env: Any) -> dict[str, tuple[int, int, int]]:
    """Distance and place of the nearest of each kind."""
    names = {number: str(name) for name, number in env._world._mat_ids.items() if name is not None}
    names.update({number: kind.__name__.lower() for kind, number in env._sem_view._obj_ids.items()})
    ids, (x, y) = env._sem_view(), env._player.pos
    wide, high = env._local_view._grid
    found: dict[str, tuple[int, int, int]] = {}
    for east in range(-(wide // 2), wide // 2 + 1):
        for south in range(-(high // 2), high // 2 + 1):
            if not (0 <= x + east < ids.shape[0] and 0 <= y + south < ids.shape[1]):
                continue
            name, place = names.get(int(ids[x + east, y + south]), ""), (abs(east) + abs(south), east, south)
            if name and name not in _NOT_LISTED and (name not in found or place < found[name]):
                found[name] = place
    return found


def _belongings(inventory: dict[str, int]) -> str:
    vitals = ", ".join(f"{name} {inventory[name]}/9" for name in _VITALS)
    items = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in inventory.items() if count and name not in _VITALS
    )
    return f"Your condition: {vitals}.\nYou have: {items or 'nothing'}."
