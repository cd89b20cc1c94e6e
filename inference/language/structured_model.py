"""A language model whose answers are validated against a pydantic schema; requests, failures, retries and timeouts."""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ValidationError

from madeleine.inference.language.config import LanguageModelConfig
from madeleine.inference.language.prices import model_call_cost_in_usd
from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.language_model import AnswerModelT, ModelCallCost, Prompt, RejectedModelAnswer

if TYPE_CHECKING:
    import httpx2

TYPICAL_BYTES_PER_TOKEN = 4
"""An estimate for servers that report no token counts, so that a token budget holds there, too."""
MAX_VALIDATION_ERRORS_SHOWN_TO_MODEL = 8
"""Validation errors of one answer that the model is told of."""
MAX_RETRY_AFTER_SECONDS = 30.0
"""For a server that says when to retry. One that wants more is not asked again for this call."""
MAX_SDK_BACKOFF_SECONDS = 8.0
"""The longest that the SDKs wait by themselves."""
MODEL_API_CONNECT_TIMEOUT_SECONDS = 10.0
PLACEHOLDER_API_KEY = "none"
"""An SDK wants one where the server of a local model does not."""
UNKNOWN_PARAMETER_STATUSES = (400, 422)
"""Status codes for a parameter that the server does not know."""
_API_ERROR_CODE_PATTERN = re.compile(r"[a-z_]{3,40}")
_THINK_TAG_BLOCK_PATTERN = re.compile(r"\A\s*<think>.*?</think>", re.S)
_FENCED_CODE_BLOCK_PATTERN = re.compile(r"```[a-z]*\s*\n(.*?)```", re.S)

SdkArguments = dict[str, Any]
"""Keyword arguments of the SDK's method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """`end_reason`: why the text ends. Tokens as the API counted them; 0 and 0 where it does not."""

    text: str
    end_reason: Literal["complete", "cut off", "declined"]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class FailedModelCall:
    """No reply. The reason is a sentence of ours: a server's own words may quote the key, or the prompt."""

    reason: str
    status: int = 0


def make_language_model_if_configured(config: LanguageModelConfig | None, key: str) -> StructuredLanguageModel | None:
    """Costs nothing until it is asked. None without a configuration, or without a key where one is needed: servers of
    local models need none."""
    if config is None or not (key or (config.protocol == "openai" and config.url)):
        return None
    from madeleine.inference.language.apis import AnthropicModel, OpenAIModel

    return AnthropicModel(config, key) if config.protocol == "anthropic" else OpenAIModel(config, key)


class StructuredLanguageModel(ABC):
    """`memory.language_model.LanguageModel` over one API. Safe for use by several tasks. Opens its connections at the
    first request, and again after `aclose`."""

    sdk_modules: ClassVar[tuple[str, ...]]
    """The SDK, and what it would import at the first request."""
    client_class: ClassVar[str]
    """Name of the SDK's class."""
    client_options: ClassVar[SdkArguments] = {}
    """Options that this SDK alone takes."""
    default_url: ClassVar[str]
    """Stated, so that no variable of the environment changes it."""

    def __init__(self, config: LanguageModelConfig, key: str) -> None:
        self._config = config
        self._key = key
        self._client: Any = None
        self._accepted_variants: dict[str, int] = {}
        """Index of the variant that the server accepted for a model."""

    async def answer_prompt(
        self, prompt: Prompt, schema: type[AnswerModelT], on_cost: Callable[[ModelCallCost], None]
    ) -> AnswerModelT | RejectedModelAnswer:
        model = self._config.large_model if prompt.size == "large" else self._config.small_model
        reply = await self._reply_to_first_accepted_variant(model, prompt, schema)
        if isinstance(reply, FailedModelCall):
            raise LanguageModelUnavailable(model, reply.reason)
        on_cost(self._call_cost(prompt, model, reply))
        if reply.end_reason == "cut off":
            raise UnusableAnswer(model, f"it was cut off at {prompt.max_tokens:,} tokens.")
        if reply.end_reason == "declined":
            raise UnusableAnswer(model, "it declined to answer.")
        return parse_model_answer(reply.text, schema)

    async def aclose(self) -> None:
        """Close its connections. Called by whoever opened it, when it is used no more."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @abstractmethod
    def _request_variants(
        self, sdk: ModuleType, model: str, prompt: Prompt, schema: type[BaseModel]
    ) -> list[SdkArguments]:
        """The same request, from what a server should accept to what every server can."""

    @abstractmethod
    async def _request_completion(self, client: Any, arguments: SdkArguments) -> Any: ...

    @abstractmethod
    def _reply_from_sdk_answer(self, answer: Any) -> ModelReply:
        """Raises `ValueError` for an answer of another shape."""

    async def _reply_to_first_accepted_variant(
        self, model: str, prompt: Prompt, schema: type[BaseModel]
    ) -> ModelReply | FailedModelCall:
        """If no variant is accepted, the failure is that of the first."""
        sdk, *_ = [await asyncio.to_thread(import_module, name) for name in self.sdk_modules]
        client = self._client = self._client or self._make_sdk_client(sdk)
        variants = self._request_variants(sdk, model, prompt, schema)
        first_failure: FailedModelCall | None = None
        for number in range(min(self._accepted_variants.get(model, 0), len(variants) - 1), len(variants)):
            reply = await self._send_and_translate_errors(sdk, client, variants[number])
            if isinstance(reply, ModelReply):
                self._accepted_variants[model] = number
            elif reply.status in UNKNOWN_PARAMETER_STATUSES:
                first_failure = first_failure or reply
                continue
            return reply
        assert first_failure is not None
        return first_failure

    async def _send_and_translate_errors(
        self, sdk: ModuleType, client: Any, arguments: SdkArguments
    ) -> ModelReply | FailedModelCall:
        """What an SDK raises does not leave this function: it holds the server's words and the request."""
        config = self._config
        at_url = f" at {config.url}" if config.url else ""
        another_api = FailedModelCall(
            f"the server{at_url} does not speak the {config.protocol} API. Check MADELEINE_LLM_URL and MADELEINE_LLM."
        )
        waits = max(MAX_SDK_BACKOFF_SECONDS, MAX_RETRY_AFTER_SECONDS) * config.retries
        try:
            async with asyncio.timeout(config.timeout_seconds * (config.retries + 1) + waits):
                answer = await self._request_completion(client, arguments)
            # The SDKs let text through, and objects of any shape.
            if isinstance(answer, BaseModel):
                return self._reply_from_sdk_answer(answer.model_dump(mode="json", warnings=False))
            return another_api
        except (TimeoutError, sdk.APITimeoutError):
            within = f"{config.timeout_seconds:g} s (MADELEINE_LLM_TIMEOUT_SECONDS)"
            return FailedModelCall(f"it did not answer within {within}.")
        except sdk.APIStatusError as error:
            return FailedModelCall(_failure_reason_from_http_status(error.status_code, error.body), error.status_code)
        except sdk.APIConnectionError:
            return FailedModelCall(f"it cannot be reached{at_url}, or hung up before it had answered.")
        except (sdk.APIError, ValueError):  # no JSON, or not what the API's answers are made of
            return another_api

    def _make_sdk_client(self, sdk: ModuleType) -> Any:
        """The SDK's client. Redirects are not followed: the key would go with them."""
        import httpx2

        config = self._config
        timeout = httpx2.Timeout(
            config.timeout_seconds, connect=min(MODEL_API_CONNECT_TIMEOUT_SECONDS, config.timeout_seconds)
        )
        hooks = {"response": [_forbid_long_retry_wait]}
        return getattr(sdk, self.client_class)(
            api_key=self._key or PLACEHOLDER_API_KEY,
            base_url=config.url or self.default_url,
            max_retries=config.retries,
            http_client=sdk.DefaultAsyncHttpxClient(timeout=timeout, follow_redirects=False, event_hooks=hooks),
            **self.client_options,
        )

    def _call_cost(self, prompt: Prompt, model: str, reply: ModelReply) -> ModelCallCost:
        input_tokens, output_tokens = reply.input_tokens, reply.output_tokens
        if not input_tokens + output_tokens:
            input_tokens = _estimated_tokens(
                prompt.system, *(turn["content"] for turn in language_model_messages_from_prompt(prompt))
            )
            output_tokens = _estimated_tokens(reply.text)
        cost = model_call_cost_in_usd(model, input_tokens, output_tokens, self._config.prices)
        return ModelCallCost(
            purpose=prompt.purpose, model=model, input_tokens=input_tokens, output_tokens=output_tokens, usd=cost
        )


def language_model_messages_from_prompt(prompt: Prompt) -> list[dict[str, str]]:
    """The messages of the request, as both APIs take them."""
    turns = [{"role": "user", "content": prompt.text}]
    if rejected := prompt.rejected:
        complaint = (rejected.complaint or rejected.reason).rstrip(".")
        again = (
            f"This answer cannot be used: {complaint}. Answer once more, with the whole JSON object and nothing else."
        )
        # Neither API takes an empty turn.
        turns.append({"role": "assistant", "content": rejected.text.strip() or "{}"})
        turns.append({"role": "user", "content": again})
    return turns


def system_prompt_with_schema(prompt: Prompt, schema: type[BaseModel]) -> str:
    """The instructions for a model that takes no schema otherwise."""
    written = json.dumps(schema.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    in_words = f"Answer with one JSON object that fits this JSON Schema, and with nothing else:\n{written}"
    return f"{prompt.system}\n\n{in_words}"


def parse_model_answer(text: str, schema: type[AnswerModelT]) -> AnswerModelT | RejectedModelAnswer:
    """The first part of the text that is JSON, validated. Models that are not held to JSON wrap it in words, fences and
    thoughts."""
    for part in _json_candidates(text):
        try:
            return schema.model_validate_json(part)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        if errors[0]["type"] != "json_invalid":
            listed = "; ".join(
                f"{_validation_error_path(error['loc'])}: {error['msg']}"
                for error in errors[:MAX_VALIDATION_ERRORS_SHOWN_TO_MODEL]
            )
            kinds = ", ".join(sorted({error["type"] for error in errors}))
            return RejectedModelAnswer(
                f"it does not fit the schema ({kinds}).", f"it does not fit the schema: {listed}", text
            )
    return RejectedModelAnswer("it is not JSON.", text=text)


def _json_candidates(text: str) -> Iterator[str]:
    answer = _THINK_TAG_BLOCK_PATTERN.sub("", text).strip()
    yield answer
    yield from _FENCED_CODE_BLOCK_PATTERN.findall(answer)
    for opening, closing in ("{}", "[]"):
        start, end = answer.find(opening), answer.rfind(closing)
        if -1 < start < end:
            yield answer[start : end + 1]


def _validation_error_path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "the whole"


def _estimated_tokens(*texts: str) -> int:
    return sum(len(text.encode(errors="replace")) for text in texts) // TYPICAL_BYTES_PER_TOKEN + 1


async def _forbid_long_retry_wait(response: httpx2.Response) -> None:
    """A server that asks for a longer wait than ours is not retried; the SDKs would wait for days, or too short."""
    if _retry_wait_seconds(response.headers) > MAX_RETRY_AFTER_SECONDS:
        response.headers["x-should-retry"] = "false"


def _retry_wait_seconds(headers: Mapping[str, str]) -> float:
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return float(headers.get(name, "")) / per_second
        except ValueError:
            continue
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return email.utils.mktime_tz(date) - time.time() if date else 0.0


def _failure_reason_from_http_status(status: int, body: object) -> str:
    answer = f"{status} {_error_code_from_response_body(body)}".strip()
    match status:
        case 401 | 403:
            return f"it refused the key ({answer}). Check the key and what it is allowed."
        case 404:
            return f"there is no such model, or no such API ({answer}). Check the model's name and MADELEINE_LLM_URL."
        case 413:
            return f"the prompt was too long for it ({answer})."
        case 402 | 429:
            return f"it takes no more requests for now, or what the account may spend is spent ({answer})."
        case _ if status >= 500:
            return f"its server is overloaded or broken ({answer}). Later may do."
        case _:
            return f"it did not take the request ({answer}). Check the model's name, and the account's credit."


def _error_code_from_response_body(body: object) -> str:
    """Such as `rate_limit_error`: a word of the API's own, never a message."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return ""
    code = inner.get("code") or inner.get("type")
    return code if isinstance(code, str) and _API_ERROR_CODE_PATTERN.fullmatch(code) else ""
