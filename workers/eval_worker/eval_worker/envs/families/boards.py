"""PettingZoo's board games."""

from typing import Any

from eval_worker.envs.families.family import Action, Family, Name, named


class Board(Family):
    is_competitive = True

    def scene(self) -> str:
        return self.drawing()

    def drawing(self) -> str:
        raise NotImplementedError

    def text(self, agent: str, observation: Any) -> str:
        return f"You are {agent}, {self.side(agent)}.\n{self.drawing()}"

    def side(self, agent: str) -> str:
        raise NotImplementedError

    def _mark(self, agent: str, marks: tuple[str, str]) -> str:
        return marks[self.game.agents.index(agent)]


class TicTacToe(Board):
    names: tuple[Name, ...] = tuple(
        (f"row {row + 1} column {column + 1}", str(1 + 3 * column + row)) for column in range(3) for row in range(3)
    )

    def side(self, agent: str) -> str:
        return f"playing {self._mark(agent, ('X', 'O'))}"

    def drawing(self) -> str:
        board = self.game.unwrapped.board
        squares = list(getattr(board, "squares", board))  # columns first
        cells = [".XO"[int(square)] for square in squares]
        return "\n".join(" ".join(cells[row + 3 * column] for column in range(3)) for row in range(3))


class ConnectFour(Board):
    names: tuple[Name, ...] = tuple((f"column {column + 1}", str(column + 1)) for column in range(7))

    def side(self, agent: str) -> str:
        return f"playing {self._mark(agent, ('X', 'O'))}"

    def drawing(self) -> str:
        cells = [".XO"[int(cell)] for cell in self.game.unwrapped.board]
        rows = [" ".join(cells[start : start + 7]) for start in range(0, 42, 7)]
        return "\n".join(["1 2 3 4 5 6 7", *rows])


class Go(Board):
    def side(self, agent: str) -> str:
        return f"playing {self._mark(agent, ('black (X)', 'white (O)'))}"

    def drawing(self) -> str:
        board = self.game.unwrapped._go.board
        size = len(board)
        rows = [f"{size - y:2} " + " ".join(".XO"[int(cell)] for cell in row) for y, row in enumerate(board)]
        return "\n".join(["   " + " ".join(_LETTERS[:size]), *rows])

    def moves(self, agent: str, mask: Any) -> list[Action] | None:
        size = len(self.game.unwrapped._go.board)
        allowed = range(size * size + 1) if mask is None else [value for value, is_legal in enumerate(mask) if is_legal]
        return [_move(value, _point(value, size)) for value in allowed]


class Chess(Board):
    def side(self, agent: str) -> str:
        return f"playing {self._mark(agent, ('white', 'black'))}"

    def drawing(self) -> str:
        board = self.game.unwrapped.board
        return f"FEN: {board.fen()}\n{board}"

    def text(self, agent: str, observation: Any) -> str:
        moves = [action["name"] for action in self.moves(agent, self.game.mask(agent)) or []]
        return f"{super().text(agent, observation)}\nLegal moves: {' '.join(moves)}"

    def moves(self, agent: str, mask: Any) -> list[Action] | None:
        from pettingzoo.classic.chess.chess_utils import action_to_move

        player, board = self.game.agents.index(agent), self.game.unwrapped.board
        allowed = [value for value, is_legal in enumerate([] if mask is None else mask) if is_legal]
        return [_move(value, action_to_move(board, value, player).uci()) for value in allowed]


_LETTERS = "ABCDEFGHJKLMNOPQRST"  # Go has no column I


def _point(value: int, size: int) -> str:
    row, column = divmod(value, size)
    return "pass" if value == size * size else f"{_LETTERS[column]}{size - row}"


def _move(value: int, name: str) -> Action:
    return {**named([(name, "")])[0], "value": int(value), "key": None, "keys": []}
