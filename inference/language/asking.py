"""A question to an API, and what comes of it: all that the two adapters have in common."""

from __future__ import annotations

import asyncio
import email.utils
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel

from madeleine.inference.language.config import LanguageConfig

if TYPE_CHECKING:
    import httpx2

MOST_WAIT_SECONDS = 30.0
"""For a server that says when to come again. One that wants more is asked another night."""
BACKOFF_SECONDS = 8.0
"""The longest that the SDKs wait by themselves."""
CONNECT_SECONDS = 10.0
NOT_TAKEN = (400, 422)
"""What servers say of a parameter that they do not know."""
_CODE = re.compile(r"[a-z_]{3,40}")

Form = dict[str, Any]
"""Arguments of the SDK's method."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    model: str
    system: str
    turns: Sequence[Turn]
    max_tokens: int
    shape: type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`end`: why the text ends. Tokens as the API counted them; 0 and 0 where it does not."""

    text: str
    end: Literal["said", "cut off", "declined"]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Nothing came of it. The reason is a sentence of ours: a server's own words may quote the key, or the question."""

    reason: str
    status: int = 0


class Api(Protocol):
    """Safe for use by several tasks. Retries, waits and timeouts are its own."""

    async def answer(self, question: Question) -> Reply | Fault: ...

    async def close(self) -> None:
        """A question that comes later opens it again."""
        ...


class Forms:
    """The forms of a question, from what a server should take to what each can; it is remembered what a model took."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    async def first_taken(
        self, model: str, forms: Sequence[Form], ask: Callable[[Form], Awaitable[Reply | Fault]]
    ) -> Reply | Fault:
        """If none is taken, the reason is something else: what was said of the first."""
        refused: Fault | None = None
        for number in range(min(self._taken.get(model, 0), len(forms) - 1), len(forms)):
            found = await ask(forms[number])
            if isinstance(found, Reply):
                self._taken[model] = number
            elif found.status in NOT_TAKEN:
                refused = refused or found
                continue
            return found
        assert refused is not None
        return refused


async def sent(
    sdk: ModuleType, config: LanguageConfig, send: Callable[[], Awaitable[Any]], read: Callable[[Any], Reply]
) -> Reply | Fault:
    """What an SDK raises is told apart here, and does not leave: it holds the server's words and the request."""
    waits = max(BACKOFF_SECONDS, MOST_WAIT_SECONDS) * config.retries
    try:
        async with asyncio.timeout(config.timeout_seconds * (config.retries + 1) + waits):
            answer = await send()
        # The SDKs let text through, and objects of any shape.
        if isinstance(answer, BaseModel):
            return read(answer.model_dump(mode="json", warnings=False))
        return _stranger(config)
    except (TimeoutError, sdk.APITimeoutError):
        return Fault(f"it did not answer within {config.timeout_seconds:g} s (MADELEINE_LLM_TIMEOUT_SECONDS).")
    except sdk.APIStatusError as error:
        return Fault(_of_status(error.status_code, error.body), error.status_code)
    except sdk.APIConnectionError:
        return Fault(f"it cannot be reached{_at(config)}, or hung up before it had answered.")
    except (sdk.APIError, ValueError):  # no JSON, or not what the API's answers are made of
        return _stranger(config)


def http_client(kind: type[httpx2.AsyncClient], config: LanguageConfig) -> httpx2.AsyncClient:
    """`kind`: the SDK's default. Redirects are not followed: the key would go with them."""
    import httpx2

    timeout = httpx2.Timeout(config.timeout_seconds, connect=min(CONNECT_SECONDS, config.timeout_seconds))
    return kind(timeout=timeout, follow_redirects=False, event_hooks={"response": [_no_long_wait]})


async def _no_long_wait(response: httpx2.Response) -> None:
    """Whoever asks for a longer wait than we have is not asked again; the SDKs would wait for days, or too short."""
    if _wait_seconds(response.headers) > MOST_WAIT_SECONDS:
        response.headers["x-should-retry"] = "false"


def _wait_seconds(headers: Mapping[str, str]) -> float:
    written = headers.get("retry-after", "")
    try:
        return float(headers.get("retry-after-ms", "")) / 1000
    except ValueError:
        pass
    try:
        return float(written)
    except ValueError:
        date = email.utils.parsedate_tz(written)
        return email.utils.mktime_tz(date) - time.time() if date else 0.0


def _stranger(config: LanguageConfig) -> Fault:
    return Fault(f"what answers{_at(config)} is no {config.protocol} API. Check MADELEINE_LLM_URL and MADELEINE_LLM.")


def _at(config: LanguageConfig) -> str:
    return f" at {config.url}" if config.url else ""


def _of_status(status: int, body: object) -> str:
    said = f"{status} {_code(body)}".strip()
    match status:
        case 401 | 403:
            return f"it refused the key ({said}). Check the key and what it is allowed."
        case 404:
            return f"there is no such model, or no such API ({said}). Check the model's name and MADELEINE_LLM_URL."
        case 413:
            return f"the question was too long for it ({said})."
        case 402 | 429:
            return f"it takes no more requests for now, or what the account may spend is spent ({said})."
        case _ if status >= 500:
            return f"its server is overloaded or broken ({said}). Later may do."
        case _:
            return f"it did not take the request ({said}). Check the model's name, and the account's credit."


def _code(body: object) -> str:
    """Such as `rate_limit_error`: a word of the API's own, never a message."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return ""
    found = inner.get("code") or inner.get("type")
    return found if isinstance(found, str) and _CODE.fullmatch(found) else ""
