"""What happens to a memory while somebody looks at it: changes, as the audit tells of them, and patrols as they run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from madeleine.patrol.run import PatrolEvent
from madeleine.server.background.loops import PatrolEventBroadcast, patrol_event_as_json
from madeleine.server.ui.reading import WebUiDataReader

WEB_UI_EVENTS_POLL_SECONDS = 1.0
"""The audit is written within a second of a recall; other processes write to it too."""
POLLS_PER_HEARTBEAT = 15
"""Polls without an event after which a sign of life is sent, which also tells whether the browser is still there."""


async def live_web_ui_events(
    reader: WebUiDataReader, patrols: PatrolEventBroadcast, is_closing: Callable[[], bool]
) -> AsyncIterator[dict[str, Any] | None]:
    """Events from now on; None for a sign of life."""
    overview = reader.memory.ledger.overview
    after = await overview.last_audit_number()
    yield None
    silent_polls = 0
    with patrols.subscribe(reader.caller.being_id) as events:
        waiting = asyncio.ensure_future(anext(events))
        try:
            while not is_closing():
                done, _ = await asyncio.wait({waiting}, timeout=WEB_UI_EVENTS_POLL_SECONDS)
                if done:
                    yield _patrol_event_for_web_ui(waiting.result())
                    waiting = asyncio.ensure_future(anext(events))
                    continue
                last = await overview.last_audit_number()
                happened = await _change_events_after_audit_number(reader, after) if last > after else []
                after = last
                silent_polls = 0 if happened else silent_polls + 1
                for event in happened:
                    yield event
                if not happened and silent_polls % POLLS_PER_HEARTBEAT == 0:
                    yield None
        finally:
            waiting.cancel()


async def _change_events_after_audit_number(reader: WebUiDataReader, after: int) -> list[dict[str, Any]]:
    happened: list[dict[str, Any]] = []
    if changes := await reader.audit_entries_after(after):
        happened.append({"type": "changes", "changes": changes})
    if await reader.has_shared_change_after(after):
        happened.append({"type": "shared"})
    return happened


def _patrol_event_for_web_ui(event: PatrolEvent) -> dict[str, Any]:
    return {"type": "patrol"} | patrol_event_as_json(event)
