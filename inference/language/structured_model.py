"""A language model whose answers are validated against a pydantic schema, over either API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from pydantic import ValidationError

from madeleine.inference.language.api import Api, Failure, ModelRequest, Reply, Turn
from madeleine.inference.language.config import LanguageConfig
from madeleine.inference.language.prices import cost_in_usd
from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.language_model import Answer, LanguageModel, Prompt, Rejected, Spent

TYPICAL_BYTES_PER_TOKEN = 4
"""Roughly: for servers that do not count, so that a budget is one there, too."""
MAX_LISTED_ERRORS = 8
"""Errors of one answer that the model is told of."""
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.S)
_FENCED = re.compile(r"```[a-z]*\s*\n(.*?)```", re.S)


class OpenLanguageModel(LanguageModel, Protocol):
    async def aclose(self) -> None:
        """Close its connections. Called by whoever opened it, when it is used no more."""
        ...


def open_language_model(config: LanguageConfig | None, key: str) -> OpenLanguageModel | None:
    """Costs nothing until it is asked. None without a configuration, or without a key where one is needed: servers of
    local models need none."""
    if config is None or not (key or (config.protocol == "openai" and config.url)):
        return None
    from madeleine.inference.language.anthropic import AnthropicApi
    from madeleine.inference.language.openai import OpenAIApi

    api = AnthropicApi(config, key) if config.protocol == "anthropic" else OpenAIApi(config, key)
    return StructuredModel(api, config)


class StructuredModel:
    """`memory.language_model.LanguageModel`."""

    def __init__(self, api: Api, config: LanguageConfig) -> None:
        self._api = api
        self._config = config

    async def ask(self, prompt: Prompt, schema: type[Answer], on_spent: Callable[[Spent], None]) -> Answer | Rejected:
        model = self._config.large_model if prompt.size == "large" else self._config.small_model
        turns = turns_of(prompt)
        reply = await self._api.answer(
            ModelRequest(model=model, system=prompt.system, turns=turns, max_tokens=prompt.max_tokens, schema=schema)
        )
        if isinstance(reply, Failure):
            raise LanguageModelUnavailable(model, reply.reason)
        on_spent(self._spent(prompt, model, turns, reply))
        if reply.end == "cut off":
            raise UnusableAnswer(model, f"it was cut off at {prompt.max_tokens:,} tokens.")
        if reply.end == "declined":
            raise UnusableAnswer(model, "it declined to answer.")
        return parsed(reply.text, schema)

    async def aclose(self) -> None:
        await self._api.close()

    def _spent(self, prompt: Prompt, model: str, turns: Sequence[Turn], reply: Reply) -> Spent:
        input_tokens, output_tokens = reply.input_tokens, reply.output_tokens
        if not input_tokens + output_tokens:
            input_tokens = _estimated_tokens(prompt.system, *(turn.content for turn in turns))
            output_tokens = _estimated_tokens(reply.text)
        cost = cost_in_usd(model, input_tokens, output_tokens, self._config.prices)
        return Spent(
            purpose=prompt.purpose, model=model, input_tokens=input_tokens, output_tokens=output_tokens, usd=cost
        )


def turns_of(prompt: Prompt) -> list[Turn]:
    turns = [Turn("user", prompt.text)]
    if rejected := prompt.rejected:
        complaint = (rejected.complaint or rejected.reason).rstrip(".")
        again = (
            f"This answer cannot be used: {complaint}. Answer once more, with the whole JSON object and nothing else."
        )
        # Neither API takes an empty turn.
        turns += [Turn("assistant", rejected.text.strip() or "{}"), Turn("user", again)]
    return turns


def parsed(text: str, schema: type[Answer]) -> Answer | Rejected:
    """The first part of the text that is JSON, validated. Models that are not held to JSON wrap it in words, fences and
    thoughts."""
    for part in _json_candidates(text):
        try:
            return schema.model_validate_json(part)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        if errors[0]["type"] != "json_invalid":
            listed = "; ".join(f"{_place(error['loc'])}: {error['msg']}" for error in errors[:MAX_LISTED_ERRORS])
            kinds = ", ".join(sorted({error["type"] for error in errors}))
            return Rejected(f"it does not fit the schema ({kinds}).", f"it does not fit the schema: {listed}", text)
    return Rejected("it is not JSON.", text=text)


def _json_candidates(text: str) -> Iterator[str]:
    answer = _THOUGHTS.sub("", text).strip()
    yield answer
    yield from _FENCED.findall(answer)
    start, end = answer.find("{"), answer.rfind("}")
    if -1 < start < end:
        yield answer[start : end + 1]


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "the whole"


def _estimated_tokens(*texts: str) -> int:
    return sum(len(text.encode(errors="replace")) for text in texts) // TYPICAL_BYTES_PER_TOKEN + 1
