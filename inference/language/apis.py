"""The two APIs: Anthropic's messages, for Claude, and OpenAI's chat completions, which most servers of local models
(Ollama, llama.cpp, vLLM) speak, too."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from madeleine.inference.language.structured_model import (
    ModelReply,
    SdkArguments,
    StructuredModel,
    prompt_messages,
    system_with_schema,
)
from madeleine.memory.language_model import Prompt

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_PLACEHOLDER_KEY = "none"
"""The SDK wants one where the server does not."""
LEAST_THINKING_TYPES = {
    "claude-haiku-5": "disabled",
    "claude-sonnet-5-5": "between_tools",
    "claude-sonnet-5": "disabled",
}
"""Thoughts count as output and reduce its limit. How they are turned off, for models that think by default."""
ALWAYS_THINKING_MODELS = ("claude-opus-5", "claude-fable-5", "claude-mythos-5")
THINKING_TOKEN_ALLOWANCE = 8_000

AbnormalEnd = Literal["cut off", "declined"]


class AnthropicModel(StructuredModel):
    sdk_modules = ("anthropic", "anthropic.resources.messages")

    def _open(self, sdk: ModuleType) -> AsyncAnthropic:
        options = self._client_options(ANTHROPIC_URL, sdk.DefaultAsyncHttpxClient)
        client: AsyncAnthropic = sdk.AsyncAnthropic(api_key=self._key, open_telemetry=False, **options)
        return client

    async def _create(self, client: AsyncAnthropic, arguments: SdkArguments) -> Any:
        return await client.messages.create(**arguments)

    def _variants(self, sdk: ModuleType, model: str, prompt: Prompt, schema: type[BaseModel]) -> list[SdkArguments]:
        """With a schema that the answer is held to; for servers and models that know none, with the schema in words."""
        plain: SdkArguments = {
            "model": model,
            "max_tokens": prompt.max_tokens + THINKING_TOKEN_ALLOWANCE * model.startswith(ALWAYS_THINKING_MODELS),
            "system": prompt.system,
            "messages": prompt_messages(prompt),
        }
        in_words = plain | {"system": system_with_schema(prompt, schema)}
        try:
            json_schema = sdk.transform_schema(schema)
        except ValueError:  # it has something that the API cannot hold an answer to
            return [in_words]
        with_schema = plain | {"output_config": {"format": {"type": "json_schema", "schema": json_schema}}}
        prefix = max((name for name in LEAST_THINKING_TYPES if model.startswith(name)), key=len, default="")
        if not prefix:
            return [with_schema, in_words]
        return [with_schema | {"thinking": {"type": LEAST_THINKING_TYPES[prefix]}}, with_schema, in_words]

    def _read(self, answer: Any) -> ModelReply:
        message = _Message.model_validate(answer)
        return ModelReply(
            text="".join(block.text for block in message.content if block.type == "text"),
            end=_ANTHROPIC_ENDS.get(message.stop_reason, "complete"),
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
        )


class _MessageUsage(BaseModel):
    input_tokens: int = 0
    output_tokens: int = 0


class _MessageBlock(BaseModel):
    type: str
    text: str = ""


class _Message(BaseModel):
    content: list[_MessageBlock]
    stop_reason: str | None = None
    usage: _MessageUsage = _MessageUsage()


_ANTHROPIC_ENDS: dict[str | None, AbnormalEnd] = {
    "max_tokens": "cut off",
    "model_context_window_exceeded": "cut off",
    "refusal": "declined",
}


class OpenAIModel(StructuredModel):
    sdk_modules = ("openai", "openai.resources.chat.completions")

    def _open(self, sdk: ModuleType) -> AsyncOpenAI:
        options = self._client_options(OPENAI_URL, sdk.DefaultAsyncHttpxClient)
        client: AsyncOpenAI = sdk.AsyncOpenAI(api_key=self._key or OPENAI_PLACEHOLDER_KEY, **options)
        return client

    async def _create(self, client: AsyncOpenAI, arguments: SdkArguments) -> Any:
        return await client.chat.completions.create(**arguments)

    def _variants(self, sdk: ModuleType, model: str, prompt: Prompt, schema: type[BaseModel]) -> list[SdkArguments]:
        """Held to a schema, held to JSON, held to nothing. Other servers ignore parameters that they do not know, so
        they get the schema in words as well."""
        of_openai = self._config.url in ("", OPENAI_URL)
        turns = prompt_messages(prompt)
        # The older name is the one that all servers know, and OpenAI's newer models refuse.
        plain: SdkArguments = {
            "model": model,
            "max_completion_tokens" if of_openai else "max_tokens": prompt.max_tokens,
        }
        in_words = plain | {"messages": [{"role": "system", "content": system_with_schema(prompt, schema)}, *turns]}
        variants = [in_words | {"response_format": {"type": "json_object"}}, in_words]
        try:
            parameters = sdk.pydantic_function_tool(schema)["function"]["parameters"]
        except (TypeError, ValueError):  # it has something that the API cannot hold an answer to
            return variants
        json_schema = {"name": schema.__name__, "schema": parameters, "strict": True}
        with_schema = {"response_format": {"type": "json_schema", "json_schema": json_schema}}
        only_schema = plain | {"messages": [{"role": "system", "content": prompt.system}, *turns]}
        return [(only_schema if of_openai else in_words) | with_schema, *variants]

    def _read(self, answer: Any) -> ModelReply:
        completion = _Completion.model_validate(answer)
        if not completion.choices:
            raise ValueError("no choices")
        choice, usage = completion.choices[0], completion.usage or _CompletionUsage()
        return ModelReply(
            text=choice.message.content or "",
            end="declined" if choice.message.refusal else _OPENAI_ENDS.get(choice.finish_reason, "complete"),
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
        )


class _CompletionUsage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _CompletionMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _CompletionChoice(BaseModel):
    message: _CompletionMessage
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_CompletionChoice]
    usage: _CompletionUsage | None = None


_OPENAI_ENDS: dict[str | None, AbnormalEnd] = {"length": "cut off", "content_filter": "declined"}
