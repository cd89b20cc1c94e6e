"""The two APIs: Anthropic's messages, for Claude, and OpenAI's chat completions, which most servers of local models
(Ollama, llama.cpp, vLLM) speak, too."""

from __future__ import annotations

from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasPath, BaseModel, Field

from madeleine.inference.language.structured_model import (
    ModelReply,
    SdkArguments,
    StructuredLanguageModel,
    language_model_messages_from_prompt,
    system_prompt_with_schema,
)
from madeleine.memory.language_model import Prompt

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
LEAST_THINKING_TYPE_BY_MODEL_PREFIX = {
    "claude-haiku-5": "disabled",
    "claude-sonnet-5-5": "between_tools",
    "claude-sonnet-5": "disabled",
}
"""Thoughts count as output and reduce its limit. How they are turned off, for models that think by default."""
ALWAYS_THINKING_MODELS = ("claude-opus-5", "claude-fable-5", "claude-mythos-5")
THINKING_TOKEN_ALLOWANCE = 8_000

AbnormalModelStopReason = Literal["cut off", "declined"]


class AnthropicModel(StructuredLanguageModel):
    sdk_modules = ("anthropic", "anthropic.resources.messages")
    client_class = "AsyncAnthropic"
    client_options: ClassVar[SdkArguments] = {"open_telemetry": False}
    default_url = ANTHROPIC_URL

    async def _request_completion(self, client: Any, arguments: SdkArguments) -> Any:
        return await client.messages.create(**arguments)

    def _request_variants(
        self, sdk: ModuleType, model: str, prompt: Prompt, schema: type[BaseModel]
    ) -> list[SdkArguments]:
        """With a schema that the answer is held to; for servers and models that know none, with the schema in words."""
        plain: SdkArguments = {
            "model": model,
            "max_tokens": prompt.max_tokens + THINKING_TOKEN_ALLOWANCE * model.startswith(ALWAYS_THINKING_MODELS),
            "system": prompt.system,
            "messages": language_model_messages_from_prompt(prompt),
        }
        in_words = plain | {"system": system_prompt_with_schema(prompt, schema)}
        try:
            json_schema = sdk.transform_schema(schema)
        except ValueError:  # it has something that the API cannot hold an answer to
            return [in_words]
        with_schema = plain | {"output_config": {"format": {"type": "json_schema", "schema": json_schema}}}
        prefix = max(
            (name for name in LEAST_THINKING_TYPE_BY_MODEL_PREFIX if model.startswith(name)), key=len, default=""
        )
        if not prefix:
            return [with_schema, in_words]
        return [
            with_schema | {"thinking": {"type": LEAST_THINKING_TYPE_BY_MODEL_PREFIX[prefix]}},
            with_schema,
            in_words,
        ]

    def _reply_from_sdk_answer(self, answer: Any) -> ModelReply:
        message = _AnthropicMessage.model_validate(answer)
        return ModelReply(
            text="".join(block.text for block in message.content if block.type == "text"),
            end_reason=_END_REASON_BY_ANTHROPIC_STOP_REASON.get(message.stop_reason, "complete"),
            input_tokens=message.input_tokens,
            output_tokens=message.output_tokens,
        )


class _AnthropicContentBlock(BaseModel):
    type: str
    text: str = ""


class _AnthropicMessage(BaseModel):
    content: list[_AnthropicContentBlock]
    stop_reason: str | None = None
    input_tokens: Annotated[int, Field(validation_alias=AliasPath("usage", "input_tokens"))] = 0
    output_tokens: Annotated[int, Field(validation_alias=AliasPath("usage", "output_tokens"))] = 0


_END_REASON_BY_ANTHROPIC_STOP_REASON: dict[str | None, AbnormalModelStopReason] = {
    "max_tokens": "cut off",
    "model_context_window_exceeded": "cut off",
    "refusal": "declined",
}


class OpenAIModel(StructuredLanguageModel):
    sdk_modules = ("openai", "openai.resources.chat.completions")
    client_class = "AsyncOpenAI"
    default_url = OPENAI_URL

    async def _request_completion(self, client: Any, arguments: SdkArguments) -> Any:
        return await client.chat.completions.create(**arguments)

    def _request_variants(
        self, sdk: ModuleType, model: str, prompt: Prompt, schema: type[BaseModel]
    ) -> list[SdkArguments]:
        """Held to a schema, held to JSON, held to nothing. Other servers ignore parameters that they do not know, so
        they get the schema in words as well."""
        of_openai = self._config.url in ("", OPENAI_URL)
        turns = language_model_messages_from_prompt(prompt)
        # The older name is the one that all servers know, and OpenAI's newer models refuse.
        token_limit = "max_completion_tokens" if of_openai else "max_tokens"
        plain: SdkArguments = {"model": model, token_limit: prompt.max_tokens}
        in_words = plain | {
            "messages": [{"role": "system", "content": system_prompt_with_schema(prompt, schema)}, *turns]
        }
        variants = [in_words | {"response_format": {"type": "json_object"}}, in_words]
        try:
            parameters = sdk.pydantic_function_tool(schema)["function"]["parameters"]
        except (TypeError, ValueError):  # it has something that the API cannot hold an answer to
            return variants
        json_schema = {"name": schema.__name__, "schema": parameters, "strict": True}
        with_schema = {"response_format": {"type": "json_schema", "json_schema": json_schema}}
        only_schema = plain | {"messages": [{"role": "system", "content": prompt.system}, *turns]}
        return [(only_schema if of_openai else in_words) | with_schema, *variants]

    def _reply_from_sdk_answer(self, answer: Any) -> ModelReply:
        completion = _OpenAICompletion.model_validate(answer)
        message = completion.message
        return ModelReply(
            text=message.content or "",
            end_reason="declined"
            if message.refusal
            else _END_REASON_BY_OPENAI_FINISH_REASON.get(completion.finish_reason, "complete"),
            input_tokens=completion.prompt_tokens,
            output_tokens=completion.completion_tokens,
        )


class _OpenAICompletionMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _OpenAICompletion(BaseModel):
    message: Annotated[_OpenAICompletionMessage, Field(validation_alias=AliasPath("choices", 0, "message"))]
    finish_reason: Annotated[str | None, Field(validation_alias=AliasPath("choices", 0, "finish_reason"))] = None
    prompt_tokens: Annotated[int, Field(validation_alias=AliasPath("usage", "prompt_tokens"))] = 0
    completion_tokens: Annotated[int, Field(validation_alias=AliasPath("usage", "completion_tokens"))] = 0


_END_REASON_BY_OPENAI_FINISH_REASON: dict[str | None, AbnormalModelStopReason] = {
    "length": "cut off",
    "content_filter": "declined",
}
