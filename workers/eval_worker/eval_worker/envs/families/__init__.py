"""What a person or an LLM needs to know about an environment: names and keys of its actions, its state in words.

family.py      an unknown environment                       gridwords.py   a grid of cells in words
grids.py       MiniGrid, BabyAI, mosaic-multigrid           toytext.py     FrozenLake, CliffWalking, Taxi, Blackjack
control.py     CartPole and others: a few numbers           atari.py       Atari
boards.py      tic-tac-toe, Connect Four, Go, chess         cards.py       poker, Hanabi, rock paper scissors
crowds.py      mpe2 and butterfly
"""

import importlib

from eval_worker.envs.families.family import Family
from eval_worker.envs.game import Game

__all__ = ["Family", "family_of"]

# The module of an environment's class (or of a class that it is derived from), and its family's class.
_FAMILIES = (
    ("mosaic_multigrid.", "grids.Multigrid"),
    ("minigrid.", "grids.MiniGrid"),
    ("gymnasium.envs.toy_text.frozen_lake", "toytext.FrozenLake"),
    ("gymnasium.envs.toy_text.cliffwalking", "toytext.CliffWalking"),
    ("gymnasium.envs.toy_text.taxi", "toytext.Taxi"),
    ("gymnasium.envs.toy_text.blackjack", "toytext.Blackjack"),
    ("gymnasium.envs.classic_control.", "control.Control"),
    ("gymnasium.envs.box2d.", "control.Control"),
    ("ale_py.", "atari.Atari"),
    ("pettingzoo.classic.tictactoe.", "boards.TicTacToe"),
    ("pettingzoo.classic.connect_four.", "boards.ConnectFour"),
    ("pettingzoo.classic.go.", "boards.Go"),
    ("pettingzoo.classic.chess.", "boards.Chess"),
    ("pettingzoo.classic.rlcard_envs.", "cards.Poker"),
    ("pettingzoo.classic.hanabi.", "cards.Hanabi"),
    ("pettingzoo.classic.rps.", "cards.RockPaperScissors"),
    ("mpe2.", "crowds.Particles"),
    ("pettingzoo.butterfly.", "crowds.Butterfly"),
)


def family_of(game: Game) -> Family:
    modules = [base.__module__ for base in type(game.unwrapped).__mro__]
    for prefix, path in _FAMILIES:
        if any(module.startswith(prefix) for module in modules):
            home, _, name = path.partition(".")
            kind: type[Family] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            return kind(game)
    return Family(game)
