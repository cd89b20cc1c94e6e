"""Event streams, which are open for hours: they end with the server, with their token, and for later ones of their
caller."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.bearer_tokens import BearerTokenId
from madeleine.memory.errors import StorageError
from madeleine.server.connections import ConnectionSlots
from madeleine.server.http.admission import ClosableSlotHolder, hold_slot_for_caller
from madeleine.server.http.authentication import access_token_of_request
from madeleine.server.http.tokens import BearerTokenLedger
from madeleine.server.wiring.clocks import utc_now

REVOKED_TOKEN_CHECK_SECONDS = 10.0
"""Between two checks whether the token of an open stream was revoked."""


def end_event_streams_on_lost_access_or_stop(
    app: ASGIApp, places: ConnectionSlots, tokens: BearerTokenLedger, stop: Callable[[], Awaitable[object]]
) -> ASGIApp:
    """`app`, whose streams end after `stop`. To the application the end looks like the client's disconnection: then it
    closes what it opened."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        unfinished = False

        async def send_and_watch(message: Message) -> None:
            nonlocal unfinished
            await send(message)
            unfinished = message["type"] == "http.response.start" or message.get("more_body", False)

        async with hold_slot_for_caller(places, scope, ClosableSlotHolder(is_idle=True)) as place:

            async def receive_or_end() -> Message:
                message: Message = {"type": "http.disconnect"}

                async def cancel_when(ended: Callable[[], Awaitable[object]]) -> None:
                    await ended()
                    tasks.cancel_scope.cancel()

                async with anyio.create_task_group() as tasks:
                    for ended in (
                        stop,
                        place.closed.wait,
                        lambda: wait_until_token_expires_or_is_revoked(scope, tokens),
                    ):
                        tasks.start_soon(cancel_when, ended)
                    message = await receive()
                    tasks.cancel_scope.cancel()
                return message

            await app(scope, receive_or_end, send_and_watch)
            if unfinished:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    return serve


async def wait_until_token_expires_or_is_revoked(scope: Scope, tokens: BearerTokenLedger) -> None:
    """Return when the request's token has expired or was revoked; without one, when a token was made."""
    token = access_token_of_request(scope)
    is_own = token is not None and not token.claims
    while True:
        seconds = REVOKED_TOKEN_CHECK_SECONDS
        if token and token.expires_at:
            seconds = min(seconds, token.expires_at - time.time())
        if seconds <= 0:
            return
        await asyncio.sleep(seconds)
        try:
            if token is None and await tokens.has_tokens():
                return
            if token and is_own:
                record = await tokens.find_by_id(BearerTokenId(token.client_id))
                if record is None or not record.is_valid_at(utc_now()):
                    return
        except StorageError:  # busy: checked again later
            continue
