"""The algorithms that this worker offers, by XuanCe's names of their folders of settings, and those that it cannot."""

from typing import NamedTuple


class Algorithm(NamedTuple):
    """One algorithm of XuanCe."""

    name: str
    is_multi_agent: bool = False
    folder: str = ""  # of its settings; empty: its name
    changes: tuple[tuple[str, str], ...] = ()  # what differs from the settings in that folder
    is_independent: bool = True  # an agent's action depends on its own observations only
    is_greedy: bool = True  # XuanCe tests it without sampling

    @property
    def settings_folder(self) -> str:
        return self.folder or self.name


def _single() -> list[Algorithm]:
    names = ("a2c", "c51", "ddpg", "ddqn", "dqn", "dueldqn", "noisydqn", "perdqn", "pg", "ppg", "ppo", "qrdqn")
    divergence = Algorithm("ppo_kl", folder="ppo", changes=(("agent", "PPO_KL"), ("learner", "PPOKL_Learner")))
    more = [divergence, Algorithm("drqn"), Algorithm("sac", is_greedy=False), Algorithm("td3")]
    return [*(Algorithm(name) for name in names), *more]


def _multi() -> list[Algorithm]:
    independent = ("iac", "iddpg", "ippo", "iql", "itd3", "maddpg", "mappo", "matd3")
    mixed = ("qmix", "qtran", "vdac", "vdn", "wqmix")
    joint = ("mfac", "mfq")
    sampling = [Algorithm(name, is_multi_agent=True, is_greedy=False) for name in ("isac", "masac")]
    alone = [Algorithm(name, is_multi_agent=True) for name in (*independent, *mixed)]
    return [*alone, *sampling, *(Algorithm(name, is_multi_agent=True, is_independent=False) for name in joint)]


ALGORITHMS: dict[str, Algorithm] = {one.name: one for one in sorted([*_single(), *_multi()])}

_NO_PLATFORM = "needs the environment Platform and the old gym, which are not installed"
_NO_EPISODES = "does not report its episodes to XuanCe's callback, so they would be missing"
_NO_VISION = "needs torchvision, which does not import beside torch's CPU build"
UNAVAILABLE: dict[str, str] = {
    "coma": "fails in this release, which passes no delta to its Huber loss",
    "commnet": _NO_EPISODES,
    "curl": _NO_VISION,
    "dcg": "needs torch_scatter, which is not installed",
    "dreamerv2": "is not supported by this worker",
    "dreamerv3": "is not supported by this worker; MOSAIC's dreamer worker has it",
    "drq": _NO_VISION,
    "ic3net": _NO_EPISODES,
    "mpdqn": _NO_PLATFORM,
    "npg": "inverts a matrix with a row for each weight of a layer: an update takes minutes and gigabytes",
    "pdqn": _NO_PLATFORM,
    "spdqn": _NO_PLATFORM,
    "spr": _NO_VISION,
    "tarmac": _NO_EPISODES,
    "td3bc": "learns from a dataset, not from an environment",
}
