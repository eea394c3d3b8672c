"""The LLM worker's parameter schema: its settings, and how the daemon starts it as an operator."""

from typing import Any

from llm_worker.config import LlmConfig

OPERATOR = {"settings": {}, "arguments": ["--interactive"]}
EXAMPLES = ["model=qwen3-8b base_url=http://127.0.0.1:8080/v1", "model=gpt-x reasoning=true history=16"]
LAB = {"refuses": {"model": "any"}}  # it has no run of its own; its tests add `agent` with a server


def make_schema() -> dict[str, Any]:
    from mosaic_sdk.schema import schema_of

    return schema_of(LlmConfig, title="LLM worker", examples=EXAMPLES, interactive=OPERATOR, lab=LAB)
