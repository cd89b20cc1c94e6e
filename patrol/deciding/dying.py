"""Offers of what is dying: each memory is merged, let go or kept (spec P6 ❹, ruling 20)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from madeleine.memory.ingest.ingest import INGEST_TOOL_NAME
from madeleine.memory.model import Memory
from madeleine.patrol.deciding.possible_duplicates import CONSOLIDATION_REQUEST_LIMITS
from madeleine.patrol.deciding.requests import (
    DecisionRequest,
    DecisionRequestLimits,
    offered_texts_split_by_request_size,
)

MAX_INGESTED_TEXT_PARTS_DECIDED_TOGETHER = 8
"""Of an ingested text. A longer one is decided in several pieces."""


def requests_about_dying_memories(
    dying: Sequence[Memory], limits: DecisionRequestLimits = CONSOLIDATION_REQUEST_LIMITS
) -> list[DecisionRequest]:
    """All of them, of all clusters, those of a session together, and those of an ingested text as one. What is dying
    was compared with what resembles it when it was fresh; so what tells most of it is enough."""
    limits = replace(limits, text_chars=limits.dying_text_chars)
    sessions = list(dict.fromkeys(memory.provenance.session_id for memory in dying))
    by_session = sorted(dying, key=lambda memory: sessions.index(memory.provenance.session_id))
    texts = memories_by_ingested_text(by_session)
    parts = offered_texts_split_by_request_size(texts, "consolidate", limits)
    return [DecisionRequest(kind="consolidate", memories=tuple(part)) for part in parts]


def memories_by_ingested_text(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    """Each memory by itself, but the parts of one ingested text together: what was told in one call, in one go, is kept
    or let go of in one decision (ADR 82). Not a part with a lesson, a preference or a pinned one, nor parts that differ
    in more than their text."""

    def text_key(memory: Memory) -> tuple[object, ...]:
        origin, scene = memory.provenance, memory.scene
        weighs_by_itself = memory.lesson or memory.pinned or memory.category == "procedural"
        if origin.tool != INGEST_TOOL_NAME or weighs_by_itself or memory.truth != "current":
            return (memory.id,)
        told = scene.actors, scene.when, scene.setting, scene.dialogue, memory.feeling, memory.category
        return origin.session_id, origin.client, memory.created_at, told

    texts: dict[tuple[object, ...], list[Memory]] = {}
    for memory in memories:
        texts.setdefault(text_key(memory), []).append(memory)
    for text in texts.values():
        for start in range(0, len(text), MAX_INGESTED_TEXT_PARTS_DECIDED_TOGETHER):
            yield text[start : start + MAX_INGESTED_TEXT_PARTS_DECIDED_TOGETHER]
