"""What decisions cost."""

from mosaic_sdk.llm.settings import EndpointSettings


def cost_of(config: EndpointSettings, tokens_in: int, tokens_cached: int, tokens_out: int) -> float | None:
    """The price of tokens, in the settings' currency; None without prices. Cached tokens are part of the input."""
    if config.price_per_million_input is None and config.price_per_million_output is None:
        return None
    per_input, per_output = config.price_per_million_input or 0.0, config.price_per_million_output or 0.0
    per_cached = per_input if config.price_per_million_cached is None else config.price_per_million_cached
    cached = min(tokens_cached, tokens_in)
    return round(((tokens_in - cached) * per_input + cached * per_cached + tokens_out * per_output) / 1e6, 12)
