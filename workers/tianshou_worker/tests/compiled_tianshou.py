"""Tianshou with what it compiles when a training begins: the lab imports this once, before its runs."""

from tianshou.algorithm.algorithm_base import Policy
from tianshou.data import VectorReplayBuffer

Policy._compile()
VectorReplayBuffer(8, 2)
