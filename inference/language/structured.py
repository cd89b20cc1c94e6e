"""Answers of a shape, over either API."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from madeleine.inference.language.asking import Api, Fault, Question, Reply, Turn
from madeleine.inference.language.config import LanguageConfig
from madeleine.inference.language.prices import usd
from madeleine.inference.language.reading import Misshapen, again, read
from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.language import Answer, Prompt, Spent

BYTES_PER_TOKEN = 4
"""Roughly: for servers that do not count, so that a budget is one there, too."""


class StructuredModel:
    """`memory.language.LanguageModel`. An answer of another shape is complained of once."""

    def __init__(self, api: Api, config: LanguageConfig) -> None:
        self._api = api
        self._config = config

    async def ask(self, prompt: Prompt, shape: type[Answer], spend: Callable[[Spent], None]) -> Answer:
        """What `spend` raises passes: the second call is then not made."""
        model = self._config.large_model if prompt.size == "large" else self._config.small_model
        turns = [Turn("user", prompt.text)]
        reason = ""
        for _ in range(2):
            reply = await self._reply(prompt, model, turns, shape)
            spend(self._spent(prompt, model, turns, reply))
            if reply.end != "said":
                raise UnusableAnswer(model, _unfinished(reply, prompt))
            found = read(reply.text, shape)
            if not isinstance(found, Misshapen):
                return found
            # Neither API takes an empty turn.
            turns += [Turn("assistant", reply.text.strip() or "{}"), Turn("user", again(found.complaint))]
            reason = found.reason
        raise UnusableAnswer(model, reason)

    async def _reply(self, prompt: Prompt, model: str, turns: Sequence[Turn], shape: type[Answer]) -> Reply:
        question = Question(model=model, system=prompt.system, turns=turns, max_tokens=prompt.max_tokens, shape=shape)
        reply = await self._api.answer(question)
        if isinstance(reply, Fault):
            raise LanguageModelUnavailable(model, reply.reason)
        return reply

    def _spent(self, prompt: Prompt, model: str, turns: Sequence[Turn], reply: Reply) -> Spent:
        asked, said = reply.input_tokens, reply.output_tokens
        if not asked + said:
            asked = _tokens(prompt.system, *(turn.content for turn in turns))
            said = _tokens(reply.text)
        cost = usd(model, asked, said, self._config.prices)
        return Spent(purpose=prompt.purpose, model=model, input_tokens=asked, output_tokens=said, usd=cost)

    async def aclose(self) -> None:
        await self._api.close()


def _unfinished(reply: Reply, prompt: Prompt) -> str:
    if reply.end == "cut off":
        return f"it was cut off at {prompt.max_tokens:,} tokens."
    return "it declined to answer."


def _tokens(*texts: str) -> int:
    return sum(len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN + 1
