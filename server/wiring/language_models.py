"""The language models that calls use, one per key: the process's own, or one that a client sent."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from madeleine.inference.language.config import LanguageModelConfig
from madeleine.inference.language.structured_model import StructuredLanguageModel, make_language_model_if_configured
from madeleine.memory.errors import InvalidInput
from madeleine.memory.language_model import LanguageModel
from madeleine.server.settings.language_model import LlmSettings, is_well_formed_api_key, require_encryption_for_api_key

logger = logging.getLogger(__name__)

MAX_IDLE_LANGUAGE_MODELS = 16
"""Unused models that stay open for the next call with their key."""

LanguageModelLease = AbstractAsyncContextManager[LanguageModel | None]
"""A language model for the duration of a call, after which it may be closed. None where none is configured."""


@dataclass
class _OpenModel:
    model: StructuredLanguageModel
    lease_count: int = 0


@dataclass(frozen=True, slots=True)
class _ModelConfigAndApiKey:
    config: LanguageModelConfig
    key: str = field(repr=False)


class LanguageModelPool:
    """A context manager: at its end all are closed. Nothing is opened or imported before it is asked for."""

    def __init__(self, settings: LlmSettings) -> None:
        """`settings` of this process."""
        self._settings = settings
        self._open: OrderedDict[_ModelConfigAndApiKey, _OpenModel] = OrderedDict()

    async def __aenter__(self) -> LanguageModelPool:
        provider, key = self._settings.llm, self._settings.resolved_llm_key()
        if not key and (provider == "anthropic" or (provider == "openai" and not self._settings.llm_url)):
            logger.warning(
                "MADELEINE_LLM is %s, and there is no key for it: set %s_API_KEY or MADELEINE_LLM_API_KEY. Until then "
                "only clients that send their own key have a language model.",
                provider,
                provider.upper(),
            )
        return self

    async def __aexit__(self, *exception: object) -> None:
        while self._open:
            await self._open.popitem()[1].model.aclose()

    def lease_model_for_this_process(self) -> LanguageModelLease:
        """With this process's key: for its own work, and for clients that send none."""
        return self._lease_model(self._settings.llm_config(), self._settings.resolved_llm_key())

    def lease_model_for_background_work(self, *, ambient_key: bool = False) -> LanguageModelLease:
        """For scheduled patrols and the memory thread. `ambient_key`: a key made for other programs is enough."""
        return self.lease_model_for_this_process() if ambient_key or self._settings.has_chosen_llm() else nullcontext()

    def lease_model_for_api_key(self, key: str) -> LanguageModelLease:
        """The model of this process with a client's key; without one, with its own. Raises `InvalidInput`."""
        if not key:
            return self.lease_model_for_this_process()
        if not is_well_formed_api_key(key):
            raise InvalidInput("The language model's key has characters that no key has. Nothing was done: check it.")
        require_encryption_for_api_key(self._settings.llm_url, key)
        return self._lease_model(self._settings.llm_config(), key)

    def lease_model_for_client(self, client: LlmSettings) -> LanguageModelLease:
        """According to a client's settings, with its key and URL; this process's if they configure none."""
        if not client.is_llm_chosen_or_turned_off():
            return self.lease_model_for_this_process()
        return self._lease_model(client.llm_config(), client.resolved_llm_key())

    @asynccontextmanager
    async def _lease_model(self, config: LanguageModelConfig | None, key: str) -> AsyncIterator[LanguageModel | None]:
        entry = self._find_or_open_model(config, key) if config else None
        if entry is None:
            yield None
            return
        entry.lease_count += 1
        try:
            yield entry.model
        finally:
            entry.lease_count -= 1
            await self._close_oldest_idle()

    def _find_or_open_model(self, config: LanguageModelConfig, key: str) -> _OpenModel | None:
        model_key = _ModelConfigAndApiKey(config, key)
        entry = self._open.pop(model_key, None)
        if entry is None and (model := make_language_model_if_configured(config, key)):
            entry = _OpenModel(model)
        if entry:
            self._open[model_key] = entry  # the most recently used one is the last
        return entry

    async def _close_oldest_idle(self) -> None:
        idle = [model_key for model_key, entry in self._open.items() if not entry.lease_count]
        for model_key in idle[: max(0, len(idle) - MAX_IDLE_LANGUAGE_MODELS)]:
            await self._open.pop(model_key).model.aclose()
