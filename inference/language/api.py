"""What both APIs have in common: requests, replies, failures, retries and timeouts."""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from madeleine.inference.language.config import LanguageConfig

if TYPE_CHECKING:
    import httpx2

LONGEST_WAIT_SECONDS = 30.0
"""For a server that says when to retry. One that wants more is not asked again for this call."""
BACKOFF_SECONDS = 8.0
"""The longest that the SDKs wait by themselves."""
CONNECT_SECONDS = 10.0
UNKNOWN_PARAMETER = (400, 422)
"""Status codes for a parameter that the server does not know."""
_CODE = re.compile(r"[a-z_]{3,40}")

Arguments = dict[str, Any]
"""Of the SDK's method."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    model: str
    system: str
    turns: Sequence[Turn]
    max_tokens: int
    schema: type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`end`: why the text ends. Tokens as the API counted them; 0 and 0 where it does not."""

    text: str
    end: Literal["complete", "cut off", "declined"]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Failure:
    """No reply. The reason is a sentence of ours: a server's own words may quote the key, or the prompt."""

    reason: str
    status: int = 0


class Api(ABC):
    """Safe for use by several tasks. Opens its connections at the first request, and again after `close`."""

    def __init__(self, config: LanguageConfig, key: str) -> None:
        self._config = config
        self._key = key
        self._client: Any = None
        self._accepted: dict[str, int] = {}
        """Index of the variant that the server accepted for a model."""

    async def answer(self, request: ModelRequest) -> Reply | Failure:
        """If no variant is accepted, the failure is that of the first."""
        sdk = await asyncio.to_thread(self._import_sdk)
        client = self._client = self._client or self._open(sdk)
        variants = self._variants(sdk, request)
        first_failure: Failure | None = None
        for number in range(min(self._accepted.get(request.model, 0), len(variants) - 1), len(variants)):
            reply = await self._send(sdk, client, variants[number])
            if isinstance(reply, Reply):
                self._accepted[request.model] = number
            elif reply.status in UNKNOWN_PARAMETER:
                first_failure = first_failure or reply
                continue
            return reply
        assert first_failure is not None
        return first_failure

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @abstractmethod
    def _import_sdk(self) -> ModuleType: ...

    @abstractmethod
    def _open(self, sdk: ModuleType) -> Any:
        """The SDK's client."""

    @abstractmethod
    def _variants(self, sdk: ModuleType, request: ModelRequest) -> list[Arguments]:
        """The same request, from what a server should accept to what every server can."""

    @abstractmethod
    async def _create(self, client: Any, arguments: Arguments) -> Any: ...

    @abstractmethod
    def _read(self, answer: Any) -> Reply:
        """Raises `ValueError` for an answer of another shape."""

    async def _send(self, sdk: ModuleType, client: Any, arguments: Arguments) -> Reply | Failure:
        """What an SDK raises does not leave this function: it holds the server's words and the request."""
        config = self._config
        waits = max(BACKOFF_SECONDS, LONGEST_WAIT_SECONDS) * config.retries
        try:
            async with asyncio.timeout(config.timeout_seconds * (config.retries + 1) + waits):
                answer = await self._create(client, arguments)
            # The SDKs let text through, and objects of any shape.
            if isinstance(answer, BaseModel):
                return self._read(answer.model_dump(mode="json", warnings=False))
            return self._not_this_api()
        except (TimeoutError, sdk.APITimeoutError):
            return Failure(f"it did not answer within {config.timeout_seconds:g} s (MADELEINE_LLM_TIMEOUT_SECONDS).")
        except sdk.APIStatusError as error:
            return Failure(_status_reason(error.status_code, error.body), error.status_code)
        except sdk.APIConnectionError:
            return Failure(f"it cannot be reached{self._at_url()}, or hung up before it had answered.")
        except (sdk.APIError, ValueError):  # no JSON, or not what the API's answers are made of
            return self._not_this_api()

    def _not_this_api(self) -> Failure:
        return Failure(
            f"the server{self._at_url()} does not speak the {self._config.protocol} API. "
            "Check MADELEINE_LLM_URL and MADELEINE_LLM."
        )

    def _at_url(self) -> str:
        return f" at {self._config.url}" if self._config.url else ""

    def _http_client(self, client_class: type[httpx2.AsyncClient]) -> httpx2.AsyncClient:
        """`client_class`: the SDK's default. Redirects are not followed: the key would go with them."""
        import httpx2

        timeout_seconds = self._config.timeout_seconds
        timeout = httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
        return client_class(timeout=timeout, follow_redirects=False, event_hooks={"response": [_refuse_long_wait]})


def schema_in_words(schema: type[BaseModel]) -> str:
    """For a model that takes no schema otherwise."""
    written = json.dumps(schema.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object that fits this JSON Schema, and with nothing else:\n{written}"


async def _refuse_long_wait(response: httpx2.Response) -> None:
    """A server that asks for a longer wait than ours is not retried; the SDKs would wait for days, or too short."""
    if _wait_seconds(response.headers) > LONGEST_WAIT_SECONDS:
        response.headers["x-should-retry"] = "false"


def _wait_seconds(headers: Mapping[str, str]) -> float:
    retry_after = headers.get("retry-after", "")
    try:
        return float(headers.get("retry-after-ms", "")) / 1000
    except ValueError:
        pass
    try:
        return float(retry_after)
    except ValueError:
        date = email.utils.parsedate_tz(retry_after)
        return email.utils.mktime_tz(date) - time.time() if date else 0.0


def _status_reason(status: int, body: object) -> str:
    answer = f"{status} {_code(body)}".strip()
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


def _code(body: object) -> str:
    """Such as `rate_limit_error`: a word of the API's own, never a message."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return ""
    code = inner.get("code") or inner.get("type")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""
