"""The settings that the workers of whole libraries share.

    class AcmeConfig(LibrarySettings):
        n_envs: int = extra(1, "Environments that are stepped together.", minimum=1)

        def check_algorithm(self) -> None:
            if self.algo not in ALGORITHMS:
                raise ConfigError(f"algo: there is no algorithm {self.algo!r}. {nearest(self.algo, ALGORITHMS)}")

Hyperparameters are in `extras.algo_params`, under the library's own names.
"""

from typing import Any, ClassVar, Dict, Iterable, Mapping, Tuple, TypeVar

from mosaic_sdk.config import ConfigError
from mosaic_sdk.settings import ALGO_PARAMS, EXTRAS, Settings, setting

TRAIN, POLICY_EVAL, RESUME, INTERACTIVE = "train", "policy_eval", "resume_training", "interactive"
MOST_SEED = 2**31 - 1
_NOT_COMPARED = ("run_id", "worker_id", "test_mode")
L = TypeVar("L", bound="LibrarySettings")


def extra(default: Any, description: str, **more: Any) -> Any:
    """A setting in `extras`."""
    return setting(default, description, place=EXTRAS, **more)


def nearest(name: str, known: Iterable[str]) -> str:
    """The sentence for an unknown name: the nearest known one, or all of them."""
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]}?" if near else f"Choose from: {', '.join(names)}."


class LibrarySettings(Settings):
    """One run of a library: a training, its continuation, an evaluation, or a policy that plays."""

    open_places: ClassVar[Tuple[str, ...]] = (ALGO_PARAMS,)

    algo: str = setting("ppo", "Algorithm.")
    env_id: str = setting("CartPole-v1", "Environment, as in gymnasium.make.")
    total_timesteps: int = setting(
        100_000, "Steps in total, summed over all environments. A resumed run counts from its first start.", minimum=1
    )
    seed: int = setting(1, "Random seed. The same seed gives the same training.", minimum=0, maximum=MOST_SEED)
    mode: str = extra(TRAIN, "What to do.", choices=(TRAIN, POLICY_EVAL, RESUME, INTERACTIVE))
    test_mode: bool = extra(False, "The same as mode=policy_eval, if mode is not set.")
    policy_path: str = extra(
        "",
        "Checkpoint to evaluate, resume or play: a path, the ID or name of a run, or last.",
        aliases=("checkpoint_path",),
        checkpoint=True,
    )
    checkpoint_every: int = extra(
        50_000, "Steps between two checkpoints; 0: only at the end and when the run is stopped.", minimum=0
    )
    keep_checkpoints: int = extra(5, "Number of checkpoints to keep, the newest ones.", minimum=1)
    eval_episodes: int = extra(10, "Episodes of an evaluation.", minimum=1)

    @classmethod
    def prepare(cls, values: Dict[str, Any]) -> Dict[str, Any]:
        if values.get("test_mode") is True:
            values.setdefault("mode", POLICY_EVAL)
        return values

    @property
    def algo_params(self) -> Dict[str, Any]:
        """The hyperparameters that were given."""
        return self.rest.get(ALGO_PARAMS, {})

    def check(self) -> None:
        if not self.policy_path or "algo" in self.given:  # otherwise the checkpoint determines the algorithm
            self.check_algorithm()
        if self.mode in (POLICY_EVAL, RESUME) and not self.policy_path:
            raise ConfigError(f"extras.policy_path is missing: mode {self.mode} needs the checkpoint to load.")
        if self.mode == TRAIN and self.policy_path:
            raise ConfigError(
                f"extras.policy_path: mode {TRAIN} starts from scratch and loads no checkpoint. "
                f"Set mode={RESUME} to continue it or mode={POLICY_EVAL} to evaluate it, or remove policy_path."
            )

    def check_algorithm(self) -> None:
        """Override it to raise ConfigError for an unknown algorithm or hyperparameter."""

    def filled_from(self: L, saved: Mapping[str, Any]) -> L:
        """This config with what it leaves out taken from a checkpoint's settings."""
        extras = dict(saved.get("extras", {}))
        extras["algo_params"] = {**extras.get("algo_params", {}), **self.algo_params}
        extras.update(mode=self.mode, policy_path=self.policy_path, test_mode=False)
        whole = type(self).from_dict({**saved, "run_id": self.run_id, "extras": extras})
        own = {name: getattr(self, name) for name in self.given if name not in _NOT_COMPARED}
        # The algorithm counts as given from here on, so that it is checked with its hyperparameters.
        return whole.replace(**{"algo": whole.algo, **own})


def check_params(algo: str, params: Iterable[str], known: Iterable[str]) -> None:
    """ConfigError for a hyperparameter that the algorithm does not have."""
    names = set(known)
    for name in params:
        if name not in names:
            raise ConfigError(f"extras.algo_params.{name}: {algo} has no such setting. {nearest(name, names)}")
