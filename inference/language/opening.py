"""From a configuration and a key to a language model."""

from __future__ import annotations

from typing import Protocol

from madeleine.inference.language.config import LanguageConfig
from madeleine.memory.ports import LanguageModel


class OpenLanguageModel(LanguageModel, Protocol):
    async def aclose(self) -> None:
        """Its connections. Whoever opened it does that, when nobody asks it any more."""
        ...


def open_language_model(config: LanguageConfig | None, key: str) -> OpenLanguageModel | None:
    """Costs nothing until it is asked. None without a configuration, or without a key where one is needed: servers of
    local models need none."""
    if config is None or not (key or (config.protocol == "openai" and config.url)):
        return None
    from madeleine.inference.language.anthropic import AnthropicApi
    from madeleine.inference.language.openai import OpenAIApi
    from madeleine.inference.language.structured import StructuredModel

    api = AnthropicApi(config, key) if config.protocol == "anthropic" else OpenAIApi(config, key)
    return StructuredModel(api, config)
