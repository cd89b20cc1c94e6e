"""Claude, by Anthropic's Messages API."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from madeleine.inference.language.api import Api, Arguments, ModelRequest, Reply, schema_in_words

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

URL = "https://api.anthropic.com"
"""Stated, so that no variable of the environment changes it."""
MIN_THINKING_TOKENS = {
    "claude-haiku-5": "disabled",
    "claude-sonnet-5-5": "between_tools",
    "claude-sonnet-5": "disabled",
}
"""Thoughts count as output and reduce its limit. How they are turned off, for models that think by default."""
ALWAYS_THINKING = ("claude-opus-5", "claude-fable-5", "claude-mythos-5")
THINKING_TOKENS = 8_000


class AnthropicApi(Api):
    def _import_sdk(self) -> ModuleType:
        import anthropic
        import anthropic.resources.messages

        return anthropic

    def _open(self, sdk: ModuleType) -> AsyncAnthropic:
        client: AsyncAnthropic = sdk.AsyncAnthropic(
            api_key=self._key,
            base_url=self._config.url or URL,
            max_retries=self._config.retries,
            http_client=self._http_client(sdk.DefaultAsyncHttpxClient),
            open_telemetry=False,
        )
        return client

    async def _create(self, client: AsyncAnthropic, arguments: Arguments) -> Any:
        return await client.messages.create(**arguments)

    def _variants(self, sdk: ModuleType, request: ModelRequest) -> list[Arguments]:
        """With a schema that the answer is held to; for servers and models that know none, with the schema in words."""
        plain: Arguments = {
            "model": request.model,
            "max_tokens": request.max_tokens + THINKING_TOKENS * request.model.startswith(ALWAYS_THINKING),
            "system": request.system,
            "messages": [{"role": turn.role, "content": turn.content} for turn in request.turns],
        }
        in_words = plain | {"system": f"{request.system}\n\n{schema_in_words(request.schema)}"}
        try:
            schema = sdk.transform_schema(request.schema)
        except ValueError:  # it has something that the API cannot hold an answer to
            return [in_words]
        with_schema = plain | {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        prefix = max((name for name in MIN_THINKING_TOKENS if request.model.startswith(name)), key=len, default="")
        if not prefix:
            return [with_schema, in_words]
        return [with_schema | {"thinking": {"type": MIN_THINKING_TOKENS[prefix]}}, with_schema, in_words]

    def _read(self, answer: Any) -> Reply:
        message = _Message.model_validate(answer)
        return Reply(
            text="".join(block.text for block in message.content if block.type == "text"),
            end=_ENDS.get(message.stop_reason, "complete"),
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
        )


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
