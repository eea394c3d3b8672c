"""BabyAI in words: one room (two for `open`), one instruction. Progress is 100 if the instruction was followed."""

import contextlib
import io
from typing import Any

from minigrid.core.world_object import Door
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import (
    AfterInstr,
    BeforeInstr,
    GoToInstr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)

from balrog_worker.actions import Actions
from balrog_worker.games.game import Game, View

ROOM_SIZE, DISTRACTORS = 8, 8
# The benchmark's levels never ask for these; they are reserved for tests of generalisation.
_LEFT_OUT = ("yellow box", "red key", "red door", "green ball", "grey door")
_DOORS = ("yellow", "green", "blue", "purple")
ACTIONS = {
    "turn left": "turn 90 degrees to the left",
    "turn right": "turn 90 degrees to the right",
    "go forward": "move one step in the direction you face",
    "pick up": "pick up the object in front of you",
    "drop": "drop the object that you carry, in front of you",
    "toggle": "open or close the door or box in front of you; a locked door needs a key of its colour",
}


class Level(RoomGridLevel):
    """One kind of instruction: goto, pickup, open, putnext or pick_up_seq_go_to."""

    def __init__(self, kind: str, max_steps: int) -> None:
        self._kind = kind
        columns = 2 if kind == "open" else 1
        super().__init__(
            room_size=ROOM_SIZE, num_rows=1, num_cols=columns, max_steps=max_steps, render_mode="rgb_array"
        )

    def gen_mission(self) -> None:
        if self._kind == "open":
            self.instrs = self._open()
        else:
            self.place_agent(0, 0)
            wanted = 1 if self._kind in ("goto", "pickup") else 2
            objects = self.add_distractors(0, 0, num_distractors=DISTRACTORS + wanted, all_unique=False)
            self.check_objs_reachable()
            self.instrs = self._instruction(objects)
        text = self.instrs.surface(self)
        if any(words in text for words in _LEFT_OUT):
            raise RejectSampling(text)

    def _open(self) -> Any:
        """A locked door between two rooms, and its key beside the agent."""
        colour = self._rand_elem(_DOORS)
        self.add_door(0, 0, door_idx=0, color=colour, locked=True)
        self.add_object(0, 0, "key", colour)
        self.add_distractors(0, 0, num_distractors=DISTRACTORS, all_unique=False)
        self.place_agent(0, 0)
        self.check_objs_reachable()
        return OpenInstr(ObjDesc("door", self._rand_elem([None, colour])))

    def _instruction(self, objects: list[Any]) -> Any:
        first = self._describe(self._rand_elem(objects))
        if self._kind == "goto":
            return GoToInstr(first)
        if self._kind == "pickup":
            return PickupInstr(first)
        second = self._describe(self._rand_elem(objects))
        if (first.type, first.color) == (second.type, second.color):
            raise RejectSampling("both objects look the same")
        if self._kind == "putnext":
            return PutNextInstr(first, second)
        pickup, goto = PickupInstr(first), GoToInstr(second)
        return BeforeInstr(pickup, goto) if self._rand_bool() else AfterInstr(goto, pickup)

    def _describe(self, thing: Any) -> Any:
        return ObjDesc(thing.type, thing.color)


class BabyAI(Game):
    default, noop = "go forward", "drop"  # with empty hands, drop does nothing

    def __init__(self, kind: str, max_steps: int) -> None:
        self.max_steps = max_steps
        self.actions = Actions(ACTIONS)
        self._env = Level(kind, max_steps)
        self._mission = ""

    def reset(self, *, seed: int) -> tuple[View, dict[str, Any]]:
        # The library prints each level that it generated and rejected.
        with contextlib.redirect_stdout(io.StringIO()):
            found, _ = self._env.reset(seed=seed)
        self.progress, self._mission = 0.0, str(found["mission"])
        self.goal = (
            "You are an agent in a room of square cells, with objects of several colours.\n"
            f"Your task: {self._mission}.\n"
            "You see only what lies in front of you and to your sides. Distances are in steps from where you stand."
        )
        return self._view(), {}

    def step(self, action: str) -> tuple[View, float, bool, bool, dict[str, Any]]:
        _, reward, terminated, truncated, _ = self._env.step(self.actions.names.index(action))
        if reward > 0:
            self.progress = 100.0
        return self._view(), float(reward), bool(terminated), bool(truncated), {}

    def render(self) -> Any:
        return self._env.render()

    def details(self) -> dict[str, Any]:
        return {"mission": self._mission}

    def close(self) -> None:
        self._env.close()

    def _view(self) -> View:
        seen = describe(self._env)
        carried = self._env.carrying
        seen.append(f"You carry a {carried.color} {carried.type}." if carried else "You carry nothing.")
        return View("\n".join(seen))


def describe(env: Any) -> list[str]:
    """What the agent sees, the nearest first; and how far it can look before a wall."""
    grid, visible = env.gen_obs_grid()
    middle, bottom = grid.width // 2, grid.height - 1
    things: list[tuple[int, str]] = []
    for column in range(grid.width):
        for row in range(grid.height):
            cell = grid.get(column, row)
            if cell is None or not visible[column, row] or cell.type == "wall" or (column, row) == (middle, bottom):
                continue
            ahead, right = bottom - row, column - middle
            things.append((ahead + abs(right), f"{_name(cell)}: {_place(ahead, right)}"))
    lines = [text for _, text in sorted(things)] or ["You see no objects."]
    return [*lines, *_walls(grid, visible, middle, bottom)]


def _walls(grid: Any, visible: Any, middle: int, bottom: int) -> list[str]:
    """The wall in front and those at the sides, where they are in sight."""
    lines = []
    for ahead, right in ((1, 0), (0, -1), (0, 1)):
        for steps in range(1, max(grid.width, grid.height)):
            column, row = middle + right * steps, bottom - ahead * steps
            if not (0 <= column < grid.width and row >= 0 and visible[column, row]):
                break
            if _is_wall(grid.get(column, row)):
                lines.append(f"wall: {_place(ahead * steps, right * steps)}")
                break
    return lines


def _is_wall(cell: Any) -> bool:
    return cell is not None and cell.type == "wall"


def _name(cell: Any) -> str:
    if isinstance(cell, Door):
        state = "locked" if cell.is_locked else "open" if cell.is_open else "closed"
        return f"{state} {cell.color} door"
    return f"{cell.color} {cell.type}"


def _place(ahead: int, right: int) -> str:
    parts = [f"{ahead} step{'' if ahead == 1 else 's'} forward"] if ahead else []
    if right:
        parts.append(f"{abs(right)} step{'' if abs(right) == 1 else 's'} {'right' if right > 0 else 'left'}")
    return " and ".join(parts)
