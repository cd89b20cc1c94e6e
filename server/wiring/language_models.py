"""The language models that calls ask, each by one key: the process's own, or one that a client brought."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field

from madeleine.inference.language.config import LanguageConfig
from madeleine.inference.language.structured_model import OpenLanguageModel, open_language_model
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ports import LanguageModel
from madeleine.server.settings.language_model import LlmSettings, is_key, refuse_unsafe

logger = logging.getLogger(__name__)

MOST_IDLE = 16
"""Models that are kept for the next call by their key."""

Lent = AbstractAsyncContextManager[LanguageModel | None]
"""For the time of a call, after which it may be closed. None where there is none."""


@dataclass
class _Open:
    model: OpenLanguageModel
    users: int = 0


@dataclass(frozen=True, slots=True)
class _Whose:
    config: LanguageConfig
    key: str = field(repr=False)


class LanguageModels:
    """A context manager: at its end all are closed. Nothing is opened or imported before it is asked for."""

    def __init__(self, settings: LlmSettings) -> None:
        """`settings` of this process."""
        self._settings = settings
        self._open: OrderedDict[_Whose, _Open] = OrderedDict()

    async def __aenter__(self) -> LanguageModels:
        wanted, own = self._settings.llm, self._settings.own_key()
        if (wanted == "anthropic" and not own) or (wanted == "openai" and not own and not self._settings.llm_url):
            logger.warning(
                "MADELEINE_LLM is %s, and there is no key for it: set %s_API_KEY or MADELEINE_LLM_API_KEY. Until then "
                "only clients that bring a key of their own have a language model.",
                wanted,
                wanted.upper(),
            )
        return self

    async def __aexit__(self, *exception: object) -> None:
        while self._open:
            await self._open.popitem()[1].model.aclose()

    def own(self) -> Lent:
        """By this process's key: for its own work, and for clients that bring none."""
        return self._lend(self._settings.language(), self._settings.own_key())

    def for_nights(self) -> Lent:
        """For patrols that nobody has asked for."""
        return self.own() if self._settings.chose_a_model() else nullcontext()

    def for_thread(self, wanted: str) -> Lent:
        """For the memory thread, which nobody has asked either; with `wanted` "on" an ambient key is enough."""
        return self.own() if wanted == "on" else self.for_nights()

    def by_key(self, key: str) -> Lent:
        """The model of this process, by a client's key; its own without one. Raises `InvalidInput`."""
        if not key:
            return self.own()
        if not is_key(key):
            raise InvalidInput("The key of the language model has signs that no key has. Nothing was done: check it.")
        config = self._settings.language()
        refuse_unsafe(self._settings.llm_url, key)
        return self._lend(config, key)

    def of(self, client: LlmSettings) -> Lent:
        """As a client's settings say, by its own key and at its own URL; this process's if they say nothing of it."""
        return self._lend(client.language(), client.own_key()) if client.names_a_model() else self.own()

    def _lend(self, config: LanguageConfig | None, key: str) -> Lent:
        return nullcontext() if config is None else self._lent(_Whose(config, key))

    @asynccontextmanager
    async def _lent(self, whose: _Whose) -> AsyncIterator[LanguageModel | None]:
        found = self._open.get(whose)
        if found is None:
            model = open_language_model(whose.config, whose.key)
            if model is None:
                yield None
                return
            found = self._open[whose] = _Open(model)
        self._open.move_to_end(whose)
        found.users += 1
        try:
            yield found.model
        finally:
            found.users -= 1
            await self._close_the_oldest()

    async def _close_the_oldest(self) -> None:
        idle = [whose for whose, one in self._open.items() if not one.users]
        for whose in idle[: max(0, len(idle) - MOST_IDLE)]:
            await self._open.pop(whose).model.aclose()
