"""What ❶ needs models for is done before the writer is taken (spec P6 ❶)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.ingest.notes import PARSE_FAILED, SCENE, read_scene
from madeleine.memory.ingest.redaction import redact_note
from madeleine.memory.model import ContentHash, Memory, MemoryId, Note, Vector, content_hash
from madeleine.memory.rules.dynamics.grouping import SIMILARITY
from madeleine.memory.rules.dynamics.roots import PROTOTYPES, Root
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope
from madeleine.patrol.deciding.classify import BATCH, classify
from madeleine.patrol.night import Evening
from madeleine.patrol.round import Round
from madeleine.patrol.steps.assign import AT_ONCE

logger = logging.getLogger(__name__)

CLASSIFIED = 500
"""Memories at most that the small model is asked about in one patrol; the prototypes do for the others."""


async def prepare(round_: Round) -> Evening:
    world = round_.world
    unread = await world.ledger.unread_notes(round_.scope, type=SCENE)
    memories, notes = read_notes(unread, round_.scope, world.now(), world.redact)
    sentences = [sentence for sentences in PROTOTYPES.values() for sentence in sentences]
    embedded = await world.embed([*sentences, *(memory.embed_text for memory in memories)])
    if embedded.error:
        logger.warning("%s: memories are given their clusters when it can", embedded.error)
        return Evening(tuple(memories), tuple(notes))
    vectors = embedded.vectors
    if not round_.rehearses:
        await world.ledger.add_vectors(world.model, vectors)
    chosen = await choose_roots(round_, memories, vectors)
    return Evening(tuple(memories), tuple(notes), vectors, prototypes(vectors), chosen)


def read_notes(
    notes: Sequence[Note], scope: Scope, now: datetime, redact: Redact = redact_secrets
) -> tuple[list[Memory], list[Note]]:
    """Memories of the notes that can be read, and every note as it is to be: those that cannot be read are kept and
    marked `[PARSE_FAILED]` (ruling 1). Secrets are taken out: a note may be older than their redaction."""
    memories: list[Memory] = []
    seen: list[Note] = []
    for note in (replace(one, content=redact_note(one.content, redact)[0]) for one in notes):
        found = read_scene(note, scope, now)
        if isinstance(found, Memory):
            memories.append(found)
            seen.append(replace(note, state="done", memory_id=found.id))
        else:
            seen.append(replace(note, state="parse_failed", reason=f"{PARSE_FAILED} {found}"))
    return memories, seen


def prototypes(vectors: Mapping[ContentHash, Vector]) -> dict[Root, NDArray[np.float32]]:
    return {
        root: np.stack([vectors[content_hash(sentence)] for sentence in sentences])
        for root, sentences in PROTOTYPES.items()
    }


async def choose_roots(
    round_: Round, new: Sequence[Memory], vectors: Mapping[ContentHash, Vector]
) -> dict[MemoryId, Root]:
    """By the small language model, for those near to no sub-cluster, as far as tokens and time reach. None where
    there is no model, or it does not answer: the prototypes decide then (ruling 5)."""
    if round_.model is None or round_.rehearses:
        return {}
    model = round_.world.model
    homeless = await round_.view.unclustered(limit=AT_ONCE)
    stored = await round_.view.memories([subject.id for subject in homeless])
    known = dict(vectors) | await round_.view.vectors(model, [one.content_hash for one in homeless])
    clusters = await round_.view.clusters()
    targets = [one.vector for one in clusters if not one.is_root and one.model == model and one.vector is not None]
    lonely = [
        memory
        for memory in (*stored, *new)
        if (vector := known.get(memory.content_hash)) is not None
        and not (targets and float((np.stack(targets) @ vector).max()) >= SIMILARITY)
    ][:CLASSIFIED]
    chosen: dict[MemoryId, Root] = {}
    for start in range(0, len(lonely), BATCH):
        if round_.out_of_time:
            break
        some = lonely[start : start + BATCH]
        try:
            roots = await classify(round_.model, [memory.scene.action for memory in some])
        except (LanguageModelUnavailable, UnusableAnswer) as error:
            logger.warning("Business or Private is decided without it: %s", error)
            break
        chosen |= {memory.id: root for memory, root in zip(some, roots, strict=True)}
    return chosen
