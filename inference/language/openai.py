"""What speaks OpenAI's chat completions: OpenAI, and most servers of local models (Ollama, llama.cpp, vLLM)."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from madeleine.inference.language.asking import Fault, Form, Forms, Question, Reply, http_client, sent
from madeleine.inference.language.config import LanguageConfig
from madeleine.inference.language.reading import in_words

if TYPE_CHECKING:
    from openai import AsyncOpenAI

URL = "https://api.openai.com/v1"
"""Said, so that no variable of the environment says another."""
NO_KEY = "none"
"""The SDK wants one where the server does not."""


class OpenAIApi:
    def __init__(self, config: LanguageConfig, key: str) -> None:
        self._config = config
        self._key = key
        self._forms = Forms()
        self._client: AsyncOpenAI | None = None

    async def answer(self, question: Question) -> Reply | Fault:
        sdk = await asyncio.to_thread(_load)
        client = self._client = self._client or self._open(sdk)

        async def ask(form: Form) -> Reply | Fault:
            return await sent(sdk, self._config, lambda: client.chat.completions.create(**form), _read)

        forms = _forms(sdk, question, of_openai=self._config.url in ("", URL))
        return await self._forms.first_taken(question.model, forms, ask)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self, sdk: ModuleType) -> AsyncOpenAI:
        client: AsyncOpenAI = sdk.AsyncOpenAI(
            api_key=self._key or NO_KEY,
            base_url=self._config.url or URL,
            max_retries=self._config.retries,
            http_client=http_client(sdk.DefaultAsyncHttpxClient, self._config),
        )
        return client


def _load() -> ModuleType:
    import openai
    import openai.resources.chat.completions

    return openai


def _forms(sdk: ModuleType, question: Question, *, of_openai: bool) -> list[Form]:
    """Held to a schema, held to JSON, held to nothing. Other servers pass over what they do not know without a word,
    so they get the schema in words as well."""
    turns = [{"role": turn.role, "content": turn.content} for turn in question.turns]

    def form(*, schema_in_words: bool, **more: Any) -> Form:
        words = f"\n\n{in_words(question.shape)}" if schema_in_words else ""
        return {
            "model": question.model,
            "messages": [{"role": "system", "content": question.system + words}, *turns],
            # The older name is the one that all servers know, and OpenAI's newer models refuse.
            "max_completion_tokens" if of_openai else "max_tokens": question.max_tokens,
        } | more

    forms = [
        form(schema_in_words=True, response_format={"type": "json_object"}),
        form(schema_in_words=True),
    ]
    try:
        schema = sdk.pydantic_function_tool(question.shape)["function"]["parameters"]
    except (TypeError, ValueError):  # it has something that the API cannot hold an answer to
        return forms
    held = {"type": "json_schema", "json_schema": {"name": question.shape.__name__, "schema": schema, "strict": True}}
    return [form(schema_in_words=not of_openai, response_format=held), *forms]


class _Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


_ENDS: dict[str | None, Literal["cut off", "declined"]] = {"length": "cut off", "content_filter": "declined"}


def _read(answer: Any) -> Reply:
    completion = _Completion.model_validate(answer)
    if not completion.choices:
        raise ValueError("no choices")
    choice, usage = completion.choices[0], completion.usage or _Usage()
    return Reply(
        text=choice.message.content or "",
        end="declined" if choice.message.refusal else _ENDS.get(choice.finish_reason, "said"),
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
    )
