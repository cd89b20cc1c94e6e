"""Claude, by Anthropic's Messages API."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from madeleine.inference.language.asking import Fault, Form, Forms, Question, Reply, http_client, sent
from madeleine.inference.language.config import LanguageConfig
from madeleine.inference.language.reading import in_words

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

URL = "https://api.anthropic.com"
"""Said, so that no variable of the environment says another."""
LEAST_THINKING = {"claude-haiku-5": "disabled", "claude-sonnet-5-5": "between_tools", "claude-sonnet-5": "disabled"}
"""Thoughts count as output and take its room. How they are turned off, for models that think unless told not to."""
ALWAYS_THINKING = ("claude-opus-5", "claude-fable-5", "claude-mythos-5")
ROOM_FOR_THOUGHTS = 8_000


class AnthropicApi:
    def __init__(self, config: LanguageConfig, key: str) -> None:
        self._config = config
        self._key = key
        self._forms = Forms()
        self._client: AsyncAnthropic | None = None

    async def answer(self, question: Question) -> Reply | Fault:
        sdk = await asyncio.to_thread(_load)
        client = self._client = self._client or self._open(sdk)

        async def ask(form: Form) -> Reply | Fault:
            return await sent(sdk, self._config, lambda: client.messages.create(**form), _read)

        return await self._forms.first_taken(question.model, _forms(sdk, question), ask)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self, sdk: ModuleType) -> AsyncAnthropic:
        client: AsyncAnthropic = sdk.AsyncAnthropic(
            api_key=self._key,
            base_url=self._config.url or URL,
            max_retries=self._config.retries,
            http_client=http_client(sdk.DefaultAsyncHttpxClient, self._config),
            open_telemetry=False,
        )
        return client


def _load() -> ModuleType:
    import anthropic
    import anthropic.resources.messages

    return anthropic


def _forms(sdk: ModuleType, question: Question) -> list[Form]:
    """With a schema that the answer is held to; for servers and models that know none, with the schema in words."""
    plain: Form = {
        "model": question.model,
        "max_tokens": question.max_tokens + ROOM_FOR_THOUGHTS * question.model.startswith(ALWAYS_THINKING),
        "system": question.system,
        "messages": [{"role": turn.role, "content": turn.content} for turn in question.turns],
    }
    in_prose = plain | {"system": f"{question.system}\n\n{in_words(question.shape)}"}
    try:
        schema = sdk.transform_schema(question.shape)
    except ValueError:  # it has something that the API cannot hold an answer to
        return [in_prose]
    held = plain | {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    thinking = max((name for name in LEAST_THINKING if question.model.startswith(name)), key=len, default="")
    if not thinking:
        return [held, in_prose]
    return [held | {"thinking": {"type": LEAST_THINKING[thinking]}}, held, in_prose]


class _Usage(BaseModel):
    input_tokens: int = 0
    output_tokens: int = 0


class _Block(BaseModel):
    type: str
    text: str = ""


class _Message(BaseModel):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage = _Usage()


_ENDS: dict[str | None, Literal["cut off", "declined"]] = {
    "max_tokens": "cut off",
    "model_context_window_exceeded": "cut off",
    "refusal": "declined",
}


def _read(answer: Any) -> Reply:
    message = _Message.model_validate(answer)
    return Reply(
        text="".join(block.text for block in message.content if block.type == "text"),
        end=_ENDS.get(message.stop_reason, "said"),
        input_tokens=message.usage.input_tokens,
        output_tokens=message.usage.output_tokens,
    )
