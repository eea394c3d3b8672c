"""MiniGrid, BabyAI and mosaic-multigrid: grids that an agent sees in part."""

from collections.abc import Sequence
from typing import Any

from eval_worker.envs.families.family import Family, Name
from eval_worker.envs.families.gridwords import describe_view, draw_scene
from eval_worker.envs.game import Outcome

MINIGRID: tuple[Name, ...] = (
    ("left", "a", "left"),
    ("right", "d", "right"),
    ("forward", "w", "up"),
    ("pickup", "p"),
    ("drop", "r"),
    ("toggle", "t"),
    ("done", "e"),
)
MULTIGRID: tuple[Name, ...] = (("noop", "s", "down"), *MINIGRID)


class MiniGrid(Family):
    names = MINIGRID

    def text(self, agent: str, observation: Any) -> str:
        env = self.game.unwrapped
        # The library's own view: a wrapper may have turned the observation into something else.
        seen = env.gen_obs()
        carrying = f"a {env.carrying.color} {env.carrying.type}" if env.carrying else ""
        return f"Mission: {seen['mission']}\n" + describe_view(seen["image"], int(seen["direction"]), carrying)

    def scene(self) -> str:
        env = self.game.unwrapped
        return draw_scene(env.grid.encode(), {tuple(env.agent_pos): int(env.agent_dir)})

    def success(self, outcome: Outcome, agent: str) -> bool | None:
        found = super().success(outcome, agent)
        return outcome.terminated[agent] and outcome.rewards[agent] > 0 if found is None else found


class Multigrid(Family):
    is_competitive = True

    def action_names(self, agent: str) -> Sequence[Name]:
        count = int(self.game.action_space(agent).n)
        return MULTIGRID if count == len(MULTIGRID) else MINIGRID

    def text(self, agent: str, observation: Any) -> str:
        env = self.game.unwrapped
        index = int(agent.rpartition("_")[2])
        one, seen = env.agents[index], env.gen_obs()[index]
        carrying = f"a {one.state.carrying.color.value} {one.state.carrying.type.value}" if one.state.carrying else ""
        about = f"You are {agent} of the {one.state.color.value} team. Mission: {one.mission!s}\n"
        return about + describe_view(seen["image"], int(seen["direction"]), carrying)

    def scene(self) -> str:
        env = self.game.unwrapped
        places = {(int(one.state.pos[0]), int(one.state.pos[1])): int(one.state.dir) for one in env.agents}
        return draw_scene(env.grid.encode(), places)
