"""PPO and A2C of Stable-Baselines3: a complete worker that trains, resumes, evaluates and plays.

mosaic worker install examples/small_worker
mosaic run small_sb3 algo=ppo env_id=CartPole-v1 total_timesteps=20000 learning_rate=1e-3
"""

import sys
from numbers import Real
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.cli import run_worker, standard_parser
from mosaic_sdk.config import ConfigError
from mosaic_sdk.contract import WorkerCapabilities, WorkerMetadata
from mosaic_sdk.interactive import serve
from mosaic_sdk.library import evaluating, saving
from mosaic_sdk.library.playing import CHECKPOINT, EnvPlayer
from mosaic_sdk.library.schema import library_schema
from mosaic_sdk.library.settings import POLICY_EVAL, LibrarySettings, check_params, nearest
from mosaic_sdk.library.training import Training

WORKER = "small_sb3"
NUMBER, WHOLE = {"type": "number"}, {"type": "integer"}
HYPERPARAMETERS = {
    "ppo": {"learning_rate": NUMBER, "gamma": NUMBER, "n_steps": WHOLE, "batch_size": WHOLE, "n_epochs": WHOLE},
    "a2c": {"learning_rate": NUMBER, "gamma": NUMBER, "n_steps": WHOLE},
}
SHORT = {"algo": "a2c", "env_id": "CartPole-v1", "total_timesteps": 500}
LAB = {
    "short": SHORT,
    "long": {**SHORT, "total_timesteps": 10**8},
    "fails": {"env_id": "NoSuch-v0"},
    "interactive": {"env_id": "CartPole-v1"},
    "agent": {"env_id": "CartPole-v1", "observation": [0, 0, 0, 0]},
}


class Config(LibrarySettings):
    """The settings that all libraries share are enough: algo, env_id, total_timesteps, seed, mode, policy_path …"""

    def check_algorithm(self) -> None:
        if self.algo not in HYPERPARAMETERS:
            raise ConfigError(f"algo: there is no algorithm {self.algo!r}. {nearest(self.algo, HYPERPARAMETERS)}")
        check_params(self.algo, self.algo_params, HYPERPARAMETERS[self.algo])


def get_worker_metadata() -> tuple[WorkerMetadata, WorkerCapabilities]:
    return WorkerMetadata(name="Small SB3 worker"), WorkerCapabilities(worker_type=WORKER)


def get_worker_schema() -> dict[str, Any]:
    examples = ["algo=ppo env_id=CartPole-v1 total_timesteps=20000"]
    return library_schema(Config, title="Small SB3", lab=LAB, examples=examples, by_algorithm=HYPERPARAMETERS)


def algorithm(config: Config) -> Any:
    """The library's class. Imported here: describing the worker and refusing a config must not wait for torch."""
    import stable_baselines3

    return {"ppo": stable_baselines3.PPO, "a2c": stable_baselines3.A2C}[config.algo]


def make_env(config: Config) -> Any:
    import gymnasium

    try:
        return gymnasium.make(config.env_id, render_mode="rgb_array")
    except gymnasium.error.Error as error:
        raise ConfigError(f"env_id: {error}") from None


def reporting_logger() -> Any:
    """The library's logger with one output: MOSAIC's telemetry, under the library's names."""
    from stable_baselines3.common.logger import KVWriter, Logger

    class Metrics(KVWriter):
        def write(self, key_values: Any, key_excluded: Any, step: int = 0) -> None:
            emit.metrics({name: float(one) for name, one in key_values.items() if isinstance(one, Real)}, step)

        def close(self) -> None:
            pass

    return Logger(None, [Metrics()])


class SmallTraining(Training):
    """Training makes checkpoints, heartbeats, the stop after SIGTERM and the summary of these methods."""

    worker, suffix, has_pickles = WORKER, ".zip", True
    model: Any = None

    @property
    def steps(self) -> int:
        return self.model.num_timesteps if self.model else 0

    def build(self, start: Any) -> None:
        env = make_env(self.config)
        if start:
            self.model = algorithm(self.config).load(start.path, env=env, device="cpu", **self.config.algo_params)
            self.model.set_random_seed(self.config.seed + self.steps)  # not the first episodes again
        else:
            seed, given = self.config.seed, self.config.algo_params
            self.model = algorithm(self.config)("MlpPolicy", env, seed=seed, device="cpu", **given)
        self.model.set_logger(reporting_logger())

    def learn(self) -> None:
        left = self.config.total_timesteps - self.steps
        self.model.learn(left, callback=self.on_step, reset_num_timesteps=self.steps == 0)

    def on_step(self, values: dict[str, Any], _: Any) -> bool:
        """The library calls it after each step, with its local variables."""
        for info in values["infos"]:
            if "episode" in info:
                truncated = info.get("TimeLimit.truncated", False)
                self.report_episode(info["episode"]["r"], info["episode"]["l"], truncated=truncated)
        self.at_step()
        return True

    def write(self, path: str) -> None:
        self.model.save(path)

    def close(self) -> None:
        self.model.get_env().close()


class Stage:
    """A checkpoint's policy and one environment, for evaluations and as an operator."""

    def __init__(self, config: Config) -> None:
        self.found = saving.find(config, worker=WORKER, has_pickles=True)
        self.config = config.filled_from(self.found.settings)
        self.env = make_env(self.config)
        self._model = algorithm(self.config).load(self.found.path, device="cpu")

    def act(self, observation: Any) -> Any:
        return self._model.predict(observation, deterministic=True)[0]

    def play(self, seed: int) -> evaluating.Played:
        observation, _ = self.env.reset(seed=seed)
        total, length, ends = 0.0, 0, (False, False)
        while not any(ends):
            observation, reward, *ends, _ = self.env.step(self.act(observation))
            total, length = total + float(reward), length + 1
        return evaluating.Played(total, length, *ends)

    def close(self) -> None:
        self.env.close()


class Policy(EnvPlayer):
    policy_kind = CHECKPOINT

    def __init__(self, config: Config) -> None:
        self._stage = Stage(config)
        super().__init__(self._stage.config, self._stage.env)

    def act(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        return self._stage.act(observation)


def work(keys: dict[str, Any], _: Any) -> dict[str, Any]:
    config = Config.from_dict(keys)
    if config.mode == POLICY_EVAL:
        return evaluating.evaluate(config, WORKER, lambda: Stage(config))
    return SmallTraining(config).run()


def interact(keys: dict[str, Any], _: Any) -> int:
    config = Config.from_dict(keys)
    make = (lambda: Policy(config)) if config.policy_path else (lambda: EnvPlayer(config, make_env(config)))
    return serve(make, run_id=config.run_id, first_seed=config.seed)


def main(argv: Any = None) -> int:
    parser = standard_parser(WORKER, "Trains with Stable-Baselines3 under MOSAIC.")
    return run_worker(work, argv=argv, parser=parser, check=Config.from_dict, interactive=interact)


if __name__ == "__main__":
    sys.exit(main())
