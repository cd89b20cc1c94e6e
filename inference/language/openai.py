"""OpenAI's chat completions: OpenAI, and most servers of local models (Ollama, llama.cpp, vLLM)."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from madeleine.inference.language.api import Api, Arguments, ModelRequest, Reply, schema_in_words

if TYPE_CHECKING:
    from openai import AsyncOpenAI

URL = "https://api.openai.com/v1"
"""Stated, so that no variable of the environment changes it."""
PLACEHOLDER_KEY = "none"
"""The SDK wants one where the server does not."""


class OpenAIApi(Api):
    def _import_sdk(self) -> ModuleType:
        import openai
        import openai.resources.chat.completions

        return openai

    def _open(self, sdk: ModuleType) -> AsyncOpenAI:
        client: AsyncOpenAI = sdk.AsyncOpenAI(
            api_key=self._key or PLACEHOLDER_KEY,
            base_url=self._config.url or URL,
            max_retries=self._config.retries,
            http_client=self._http_client(sdk.DefaultAsyncHttpxClient),
        )
        return client

    async def _create(self, client: AsyncOpenAI, arguments: Arguments) -> Any:
        return await client.chat.completions.create(**arguments)

    def _variants(self, sdk: ModuleType, request: ModelRequest) -> list[Arguments]:
        """Held to a schema, held to JSON, held to nothing. Other servers ignore parameters that they do not know, so
        they get the schema in words as well."""
        of_openai = self._config.url in ("", URL)
        plain: Arguments = {
            "model": request.model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in request.turns],
            # The older name is the one that all servers know, and OpenAI's newer models refuse.
            "max_completion_tokens" if of_openai else "max_tokens": request.max_tokens,
        }
        system = {"role": "system", "content": request.system}
        system_with_schema = system | {"content": f"{request.system}\n\n{schema_in_words(request.schema)}"}
        in_words = plain | {"messages": [system_with_schema, *plain["messages"]]}
        variants = [in_words | {"response_format": {"type": "json_object"}}, in_words]
        try:
            schema = sdk.pydantic_function_tool(request.schema)["function"]["parameters"]
        except (TypeError, ValueError):  # it has something that the API cannot hold an answer to
            return variants
        json_schema = {"name": request.schema.__name__, "schema": schema, "strict": True}
        with_schema = {"response_format": {"type": "json_schema", "json_schema": json_schema}}
        only_schema = plain | {"messages": [system, *plain["messages"]]}
        return [(only_schema if of_openai else in_words) | with_schema, *variants]

    def _read(self, answer: Any) -> Reply:
        completion = _Completion.model_validate(answer)
        if not completion.choices:
            raise ValueError("no choices")
        choice, usage = completion.choices[0], completion.usage or _Usage()
        return Reply(
            text=choice.message.content or "",
            end="declined" if choice.message.refusal else _ENDS.get(choice.finish_reason, "complete"),
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
        )


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
