"""The BALROG worker's settings: what is played, by which agent, and how the model is asked."""

from mosaic_sdk.config import ConfigError
from mosaic_sdk.llm.settings import EndpointSettings
from mosaic_sdk.settings import setting

from balrog_worker.tasks import ALL, ENVIRONMENTS, Task, chosen

NAIVE, CHAIN_OF_THOUGHT, RANDOM, NOOP = "naive", "chain_of_thought", "random", "scripted:noop"
MODELS = (NAIVE, CHAIN_OF_THOUGHT)  # the agents that ask a model
TEXT, JSON_SCHEMA = "text", "json_schema"


class BalrogConfig(EndpointSettings):
    """Defaults are those of the published benchmark, where it has one."""

    tasks: str = setting(
        ALL,
        f"Comma-separated: {ALL}, an environment ({', '.join(ENVIRONMENTS)}) or a task (babyai/goto).",
        examples=["babyai/goto,crafter"],
    )
    agent: str = setting(
        NAIVE,
        "naive and chain_of_thought ask a model; random and scripted:noop need none.",
        choices=(NAIVE, CHAIN_OF_THOUGHT, RANDOM, NOOP),
    )
    episodes: int | None = setting(
        None, "Episodes of each task; null: as published (5 or 10, by environment).", minimum=1
    )
    max_steps: int | None = setting(None, "Most steps of an episode; null: as published, by environment.", minimum=1)
    seed: int = setting(0, "Seed of the first episode of each task; the next ones follow.", minimum=0, maximum=2**30)

    history: int = setting(16, "How many former turns the model is shown again.", minimum=0, maximum=1000)
    thought_history: int = setting(
        1, "In how many of those turns a chain_of_thought agent sees its own reasoning.", minimum=0, maximum=1000
    )
    output: str = setting(
        TEXT, "text: as published; json_schema: the server may only answer with an action.", choices=(TEXT, JSON_SCHEMA)
    )
    temperature: float | None = setting(1.0, "Sampling temperature; null: the server's default.", minimum=0, maximum=2)
    max_tokens: int = setting(4096, "Most tokens of one answer.", minimum=1)
    sampling_seed: int | None = setting(None, "Seed of the server's sampling, sent with each request.", minimum=0)

    treasure_hunter_level: int = setting(30, "Level of textworld/treasure_hunter.", minimum=1, maximum=30)
    coin_collector_level: int = setting(40, "Level of textworld/coin_collector.", minimum=1, maximum=300)
    cooking_rooms: int = setting(12, "Rooms of textworld/the_cooking_game.", choices=(1, 6, 9, 12))
    nle_progression_file: str = setting(
        "", 'Table of NetHack\'s progression, {"Dlvl:2": 0.01, "Xp:2": 0.01, …}; without it, a linear scale.'
    )
    trajectories: bool = setting(True, "Write what the agent saw and answered into trajectories/.")

    resume_from: str = setting("", "Journal of an evaluation to continue: a file, or a run.", checkpoint=True)
    heartbeat_s: float = setting(10.0, "Seconds between heartbeats.", exclusive_minimum=0)

    def check(self) -> None:
        chosen(self.tasks)  # refuses unknown ones
        self.check_absolute("nle_progression_file")
        if self.asks_a_model:
            self.check_endpoint()
        elif self.model:
            raise ConfigError(f"model: agent={self.agent} asks no model. Remove model, or set agent={NAIVE}.")

    @property
    def asks_a_model(self) -> bool:
        return self.agent in MODELS

    def chosen_tasks(self) -> list[Task]:
        return chosen(self.tasks)

    def episodes_of(self, task: Task) -> int:
        return self.episodes or ENVIRONMENTS[task.environment].episodes

    def max_steps_of(self, task: Task) -> int:
        return self.max_steps or ENVIRONMENTS[task.environment].max_steps
