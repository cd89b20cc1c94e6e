"""How much anybody may have: requests in a time, requests at once, bytes of a request."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.http.identity import identified
from madeleine.server.http.refusals import RETRY_SECONDS, refusal

KNOWN_KEYS = 10_000
"""Callers whose buckets are remembered; beyond, those who were here longest ago start anew."""


class RateLimit:
    """A bucket for each key, filled evenly, that holds a minute's worth. `now` is in seconds, of any origin."""

    def __init__(self, per_minute: int) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """key → (what was left, when)"""

    def wait(self, key: str, *, now: float) -> float:
        """0 if one more is taken; else it is not, and there will be room in so many seconds."""
        left, since = self._buckets.pop(key, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        taken = left >= 1
        self._buckets[key] = (left - 1 if taken else left, now)
        if len(self._buckets) > KNOWN_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - left) / self._per_second


class RateLimited:
    """429 for a token that asks too often; without a token, for an address. So tokens cannot be tried out either."""

    def __init__(self, app: ASGIApp, limit: RateLimit, *, clock: Callable[[], float]) -> None:
        self._app = app
        self._limit = limit
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seconds = self._limit.wait(rate_key(scope), now=self._clock())
        if seconds:
            wait = math.ceil(seconds)
            answer = refusal(429, f"Too many requests. Try again in {wait} s.", retry_after=wait)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def rate_key(scope: Scope) -> str:
    if token := identified(scope):
        return f"token {token.client_id} {token.subject} {(token.claims or {}).get('iss', '')}"
    return f"address {(scope.get('client') or ('',))[0]}"


class Bounded:
    """503 for a request beyond so many at once."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._now >= self._most:
            message = f"{self._most} requests are worked on already. Try again in a moment."
            await refusal(503, message, retry_after=RETRY_SECONDS)(scope, receive, send)
            return
        self._now += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._now -= 1


class WholeBody:
    """Hands a POST on when its body is here whole: 413 if it is too long, 408 if it takes too long, 415 if it does not
    call itself JSON."""

    def __init__(self, app: ASGIApp, *, most_bytes: int, most_seconds: float) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            await refusal(415, "Send JSON, with Content-Type: application/json.")(scope, receive, send)
            return
        too_long = refusal(413, f"The request is longer than {self._most_bytes:,} bytes. Split it.")
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self._most_bytes:
            await too_long(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._most_seconds):
                body = await _read(receive, self._most_bytes)
        except TimeoutError:
            message = f"The request took longer than {self._most_seconds:g} s to arrive."
            await refusal(408, message)(scope, receive, send)
            return
        if body is None:
            await too_long(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


async def _read(receive: Receive, most: int) -> list[Message] | None:
    """The body as one message, and what came in its place if the client has gone. None if it is too long."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return [message]
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return [{"type": "http.request", "body": bytes(body), "more_body": False}]


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    return replay
