"""Gymnasium's text worlds."""

from typing import Any

from eval_worker.envs.families.family import Family, Name

LEFT, RIGHT, UP, DOWN = ("left", "a", "left"), ("right", "d", "right"), ("up", "w", "up"), ("down", "s", "down")


class FrozenLake(Family):
    names: tuple[Name, ...] = (LEFT, DOWN, RIGHT, UP)

    def text(self, agent: str, observation: Any) -> str:
        env = self.game.unwrapped
        rows = [[cell.decode() for cell in row] for row in env.desc]
        row, column = divmod(int(env.s), env.ncol)
        slippery = "The ice is slippery: you may slide sideways. " if env.spec.kwargs.get("is_slippery", True) else ""
        return (
            f"You are at row {row + 1}, column {column + 1}. {slippery}Reach G; H is a hole.\n"
            f"The lake (S start, F ice, H hole, G goal, you in brackets):\n{_drawn(rows, row, column)}"
        )

    def scene(self) -> str:
        return self.text("", None)


class CliffWalking(Family):
    names: tuple[Name, ...] = (UP, RIGHT, DOWN, LEFT)

    def text(self, agent: str, observation: Any) -> str:
        env = self.game.unwrapped
        height, width = env.shape
        row, column = divmod(int(env.s), width)
        rows = [["C" if env._cliff[y, x] else "." for x in range(width)] for y in range(height)]
        rows[-1][0], rows[-1][-1] = "S", "G"
        return (
            f"You are at row {row + 1}, column {column + 1}. Reach G without falling off the cliff.\n"
            f"The map (S start, C cliff, G goal, you in brackets):\n{_drawn(rows, row, column)}"
        )

    def scene(self) -> str:
        return self.text("", None)


class Taxi(Family):
    names: tuple[Name, ...] = (
        ("south", "s", "down"),
        ("north", "w", "up"),
        ("east", "d", "right"),
        ("west", "a", "left"),
        ("pickup", "p"),
        ("dropoff", "r"),
    )
    _STOPS = ("R (red)", "G (green)", "Y (yellow)", "B (blue)")

    def text(self, agent: str, observation: Any) -> str:
        env = self.game.unwrapped
        row, column, passenger, goal = (int(part) for part in env.decode(env.s))
        where = "in the taxi" if passenger == len(self._STOPS) else f"waiting at {self._STOPS[passenger]}"
        rows = [[cell.decode() for cell in line] for line in env.desc]
        rows[1 + row][2 * column + 1] = "@"
        drawing = "\n".join("".join(line) for line in rows)
        return (
            f"The taxi is at row {row + 1}, column {column + 1}. The passenger is {where} and wants to go to "
            f"{self._STOPS[goal]}.\nThe map (@ is the taxi, | a wall, : a way through):\n{drawing}"
        )

    def scene(self) -> str:
        return self.text("", None)


class Blackjack(Family):
    names: tuple[Name, ...] = (("stick", "s"), ("hit", "h"))

    def text(self, agent: str, observation: Any) -> str:
        total, dealer, ace = (int(part) for part in observation)
        usable, shown = " with a usable ace" if ace else "", "an ace" if dealer == 1 else dealer
        return f"Your cards: {total}{usable}. The dealer shows {shown}."


def _drawn(rows: list[list[str]], row: int, column: int) -> str:
    cells = [[f" {cell} " for cell in line] for line in rows]
    cells[row][column] = f"[{rows[row][column]}]"
    return "\n".join("".join(line) for line in cells)
