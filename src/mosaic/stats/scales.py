"""Environments whose returns have a known scale, so that returns of different ones can be put together: 0 is the return
of a random or a useless policy, 1 that of a human or of a perfect one.

Atari: a random policy, and the human tester of Mnih et al. (2015) and Wang et al. (2016), from no-op starts.
"""

import re
from dataclasses import dataclass

from mosaic.stats.averages import Floats


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    words: str  # what 0 and 1 mean

    def normalised(self, values: Floats) -> Floats:
        return (values - self.low) / (self.high - self.low)


BOUNDED = (  # pattern of an environment's id, lowest and highest return
    (r"CartPole-v0", 0.0, 200.0),
    (r"CartPole-v1", 0.0, 500.0),
    (r"MiniGrid-.*|BabyAI-.*", 0.0, 1.0),
    (r"dm_control/.*|dmc_.*", 0.0, 1000.0),
)
ATARI_ID = re.compile(r"(?:ALE/|atari_)?([A-Za-z0-9_]+?)(?:NoFrameskip|Deterministic)?(?:-v\d)?")
_ATARI = """
Alien 227.8 7127.7, Amidar 5.8 1719.5, Assault 222.4 742.0, Asterix 210.0 8503.3, Asteroids 719.1 47388.7,
Atlantis 12850.0 29028.1, BankHeist 14.2 753.1, BattleZone 2360.0 37187.5, BeamRider 363.9 16926.5,
Berzerk 123.7 2630.4, Bowling 23.1 160.7, Boxing 0.1 12.1, Breakout 1.7 30.5, Centipede 2090.9 12017.0,
ChopperCommand 811.0 7387.8, CrazyClimber 10780.5 35829.4, Defender 2874.5 18688.9, DemonAttack 152.1 1971.0,
DoubleDunk -18.6 -16.4, Enduro 0.0 860.5, FishingDerby -91.7 -38.7, Freeway 0.0 29.6, Frostbite 65.2 4334.7,
Gopher 257.6 2412.5, Gravitar 173.0 3351.4, Hero 1027.0 30826.4, IceHockey -11.2 0.9, Jamesbond 29.0 302.8,
Kangaroo 52.0 3035.0, Krull 1598.0 2665.5, KungFuMaster 258.5 22736.3, MontezumaRevenge 0.0 4753.3,
MsPacman 307.3 6951.6, NameThisGame 2292.3 8049.0, Phoenix 761.4 7242.6, Pitfall -229.4 6463.7, Pong -20.7 14.6,
PrivateEye 24.9 69571.3, Qbert 163.9 13455.0, Riverraid 1338.5 17118.0, RoadRunner 11.5 7845.0, Robotank 2.2 11.9,
Seaquest 68.4 42054.7, Skiing -17098.1 -4336.9, Solaris 1236.3 12326.7, SpaceInvaders 148.0 1668.7,
StarGunner 664.0 10250.0, Surround -10.0 6.5, Tennis -23.8 -8.3, TimePilot 3568.0 5229.2, Tutankham 11.4 167.6,
UpNDown 533.4 11693.2, Venture 0.0 1187.5, VideoPinball 0.0 17667.9, WizardOfWor 563.5 4756.5,
YarsRevenge 3092.9 54576.9, Zaxxon 32.5 9173.3
"""


def scale_of(env_id: str) -> Scale | None:
    """None if the scale of the environment's returns is not known."""
    for pattern, low, high in BOUNDED:
        if re.fullmatch(pattern, env_id):
            return Scale(low, high, "the range of possible returns")
    game = ATARI_ID.fullmatch(env_id)
    is_atari = game and ("/" in env_id or "NoFrameskip" in env_id or env_id.startswith("atari_"))
    return _atari().get(_plain(game[1])) if game and is_atari else None


def _atari() -> dict[str, Scale]:
    rows = [row.split() for row in _ATARI.split(",")]
    return {_plain(game): Scale(float(low), float(high), "random policy to human") for game, low, high in rows}


def _plain(game: str) -> str:
    return game.replace("_", "").lower()
