"""NetHack, the whole game. Progress is how deep the player came, and how experienced, whichever is further."""

from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import read_json
from nle import nethack
from nle.env.tasks import NetHackScore

from balrog_worker.games.dungeon import Dungeon
from balrog_worker.games.screen import KEYS

DEEPEST, MOST_EXPERIENCED = 50, 30  # the ends of the linear scale
PATIENCE = 150  # steps without a turn of the game, after which an episode is over
_GOAL = (
    "You play NetHack, a dungeon game. You are the @ on the map.\n"
    "Go as deep into the dungeon and gain as many experience levels as you can, and survive. "
    "Stairs down are >, stairs up <."
)


class Table:
    """Progress of a dungeon level and an experience level; published ones come from a file."""

    def __init__(self, path: str = "") -> None:
        self._values = _read_table(path) if path else {}
        self._is_linear = not path

    def progress(self, depth: int, experience: int) -> float:
        if self._is_linear:
            far = max((depth - 1) / (DEEPEST - 1), (experience - 1) / (MOST_EXPERIENCED - 1))
            return 100.0 * min(1.0, max(0.0, far))
        return 100.0 * max(self._values.get(f"Dlvl:{depth}", 0.0), self._values.get(f"Xp:{experience}", 0.0))


class NetHack(Dungeon):
    """NetHackChallenge's rules, but with seeds: that task refuses them."""

    default, noop, goal = "esc", "wait", _GOAL

    def __init__(self, max_steps: int, table: str) -> None:
        self._table = Table(table)
        env = NetHackScore(
            actions=nethack.ACTIONS,
            character="@",
            allow_all_yn_questions=True,
            allow_all_modes=True,
            penalty_mode="constant",
            penalty_step=0.0,
            penalty_time=0.0,
            max_episode_steps=10 * max_steps,  # steps that read messages do not count
            observation_keys=KEYS,
            savedir=None,
        )
        super().__init__(env, max_steps)
        self._depth = self._experience = 1
        self._turn, self._idle = -1, 0

    def reset(self, *, seed: int) -> Any:
        self._depth = self._experience = 1
        self._turn, self._idle = -1, 0
        return super().reset(seed=seed)

    def step(self, action: str) -> Any:
        view, reward, terminated, truncated, info = super().step(action)
        return view, reward, terminated, truncated or (not terminated and self._idle >= PATIENCE), info

    def judge(self, observation: Any, info: dict[str, Any]) -> None:
        stats = observation["blstats"]
        depth, experience = int(stats[nethack.NLE_BL_DEPTH]), int(stats[nethack.NLE_BL_XP])
        self._depth, self._experience = max(self._depth, depth), max(self._experience, experience)
        self.progress = max(self.progress, self._table.progress(depth, experience))
        turn = int(stats[nethack.NLE_BL_TIME])
        self._idle = self._idle + 1 if turn == self._turn else 0
        self._turn = turn

    def details(self) -> dict[str, Any]:
        return {"dungeon_level": self._depth, "experience_level": self._experience}


def _read_table(path: str) -> dict[str, float]:
    try:
        table = read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"nle_progression_file: {path} cannot be read: {error}.") from None
    for name, value in table.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
            raise ConfigError(f"nle_progression_file: {name} in {path} must be a number from 0 to 1.")
        if name.partition(":")[0] not in ("Dlvl", "Xp") or not name.partition(":")[2].isdigit():
            raise ConfigError(f'nle_progression_file: {name} in {path} must look like "Dlvl:2" or "Xp:2".')
    return {name: float(value) for name, value in table.items()}
