"""Families of environments, as XuanCe's folders of settings name them."""

import re

CLASSIC, BOX2D, MUJOCO, MPE = "classic_control", "box2d", "mujoco", "mpe"
FAMILIES = (CLASSIC, BOX2D, MUJOCO, MPE)

_MEMBERS = {
    BOX2D: ("BipedalWalker", "BipedalWalkerHardcore", "CarRacing", "LunarLander", "LunarLanderContinuous"),
    MUJOCO: (
        *("Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum"),
        *("InvertedPendulum", "Pusher", "Reacher", "Swimmer", "Walker2d"),
    ),
}


def family_of(env_id: str) -> str:
    """The family of an environment. What is not known is made by gymnasium.make, as those of classic control are."""
    if re.fullmatch(r"simple(_[a-z_]+)?_v\d+", env_id):
        return MPE
    name = env_id.rpartition("-v")[0] or env_id
    return next((family for family, members in _MEMBERS.items() if name in members), CLASSIC)
