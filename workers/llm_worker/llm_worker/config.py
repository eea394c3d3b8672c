"""The LLM worker's settings. README.md and docs/howto/llm-operators.md describe them in groups."""

from mosaic_sdk.llm.settings import EndpointSettings
from mosaic_sdk.settings import setting

TEXT, IMAGE, BOTH = "text", "image", "both"
JSON_SCHEMA, JSON_OBJECT = "json_schema", "json_object"
NOOP, RANDOM, FIRST, END = "noop", "random", "first", "end"
AUTO = "auto"
FAMILIES = ("minigrid", "multigrid", "toy_text", "board_games", "atari", "generic")


class LlmConfig(EndpointSettings):
    """Which model is asked, what it is shown, and what happens when its answer cannot be used."""

    seed: int | None = setting(None, "Seed of the server's sampling, sent with each request.", minimum=0)

    observation: str = setting(TEXT, "What the model is shown.", choices=(TEXT, IMAGE, BOTH))
    history: int = setting(8, "How many former turns of the episode the model is shown again.", minimum=0, maximum=1000)
    family: str = setting(AUTO, "Prompt template; auto: by the environment's id.", choices=(AUTO, *FAMILIES))
    prompt_file: str = setting("", "A prompt template of your own, instead of a family's.")
    reasoning: bool = setting(False, "Ask for a thought before the action; it is shown as the lane's text.")

    output: str = setting(JSON_SCHEMA, "How the model must answer.", choices=(JSON_SCHEMA, JSON_OBJECT, TEXT))
    illegal_retries: int = setting(2, "How often a model that chose no legal action is asked again.", minimum=0)
    fallback: str = setting(RANDOM, "What then happens; it is counted.", choices=(NOOP, RANDOM, FIRST, END))

    max_concurrency: int = setting(
        4, "Most requests at once, over all of the run's processes of this operator.", minimum=1
    )
    replay_ledger: str = setting("", "Ledger of an interrupted run: what it has is not asked again.")

    def check(self) -> None:
        self.check_endpoint()
        self.check_absolute("prompt_file", "replay_ledger")

    @property
    def views(self) -> list[str]:
        """The views of the environment that the model is shown."""
        return [TEXT, IMAGE] if self.observation == BOTH else [self.observation]
