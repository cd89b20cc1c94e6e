"""What ❶ needs models for is prepared before the transaction (spec P6 ❶)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.ingest.notes import PARSE_FAILED, SCENE, read_scene
from madeleine.memory.ingest.redaction import redact_note
from madeleine.memory.language_model import MeteredModel, Prompt, Rejected
from madeleine.memory.model import ContentHash, Memory, MemoryId, Note, Scope, Vector, content_hash
from madeleine.memory.rules.dynamics.clustering import MIN_GROUP_SIMILARITY, ROOT_PROTOTYPES, Root
from madeleine.memory.rules.prompting.recalled_text import quoted
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.answers import AnswerSchema
from madeleine.patrol.deciding.requests import SYSTEM, block, json_line, shortened
from madeleine.patrol.steps.assign import ASSIGNMENT_BATCH
from madeleine.patrol.unit_of_work import PreparedInputs

logger = logging.getLogger(__name__)

MAX_CLASSIFIED = 500
"""Memories that the small model classifies in one patrol; the prototypes do for the others."""
CLASSIFICATION_BATCH = 50
ACTION_CHARACTERS = 300
"""Of an action, enough to tell its root."""


async def prepare(context: PatrolContext) -> PreparedInputs:
    services = context.services
    unread = await services.ledger.unread_notes(context.scope, type=SCENE)
    memories, notes = read_notes(unread, context.scope, services.now(), services.redact)
    sentences = [sentence for sentences in ROOT_PROTOTYPES.values() for sentence in sentences]
    embedded = await services.embed([*sentences, *(memory.embed_text for memory in memories)])
    if embedded.error:
        logger.warning("memories get their clusters at a later patrol: %s", embedded.error)
        return PreparedInputs(tuple(memories), tuple(notes))
    vectors = embedded.vectors
    if not context.dry_run:
        await services.ledger.add_vectors(services.embedding_model, vectors)
    prototypes = {
        root: np.stack([vectors[content_hash(sentence)] for sentence in sentences])
        for root, sentences in ROOT_PROTOTYPES.items()
    }
    roots = await choose_roots(context, memories, vectors)
    return PreparedInputs(tuple(memories), tuple(notes), vectors, prototypes, roots)


def read_notes(
    notes: Sequence[Note], scope: Scope, now: datetime, redact: Redact = redact_secrets
) -> tuple[list[Memory], list[Note]]:
    """Memories of the notes that can be read, and every note in its new state: those that cannot be read are kept and
    marked `[PARSE_FAILED]` (ruling 1). Secrets are removed: a note may be older than their redaction."""
    memories: list[Memory] = []
    read: list[Note] = []
    for note in (replace(note, content=redact_note(note.content, redact)[0]) for note in notes):
        scene = read_scene(note, scope, now)
        if isinstance(scene, Memory):
            memories.append(scene)
            read.append(replace(note, state="done", memory_id=scene.id))
        else:
            read.append(replace(note, state="parse_failed", reason=f"{PARSE_FAILED} {scene}"))
    return memories, read


# --- Business or Private, by a small language model (spec P6 ❶.5) -------------------------------------------------


async def choose_roots(
    context: PatrolContext, new: Sequence[Memory], vectors: Mapping[ContentHash, Vector]
) -> dict[MemoryId, Root]:
    """For memories near to no sub-cluster, until the token budget or the time limit is reached. Empty without a model,
    or if it does not answer: the prototypes decide then (ruling 5)."""
    if context.language_model is None or context.dry_run:
        return {}
    embedding_model = context.services.embedding_model
    unclustered = await context.reads.unclustered(limit=ASSIGNMENT_BATCH)
    stored = await context.reads.memories([state.id for state in unclustered])
    hashes = [state.content_hash for state in unclustered]
    vectors = {**vectors, **await context.reads.vectors(embedding_model, hashes)}
    targets = [
        cluster.vector
        for cluster in await context.reads.clusters()
        if not cluster.is_root and cluster.model == embedding_model and cluster.vector is not None
    ]
    matrix = np.stack(targets) if targets else None
    far = [
        memory
        for memory in (*stored, *new)
        if (vector := vectors.get(memory.content_hash)) is not None
        and (matrix is None or float((matrix @ vector).max()) < MIN_GROUP_SIMILARITY)
    ][:MAX_CLASSIFIED]
    roots: dict[MemoryId, Root] = {}
    for start in range(0, len(far), CLASSIFICATION_BATCH):
        if context.out_of_time:
            break
        batch = far[start : start + CLASSIFICATION_BATCH]
        try:
            batch_roots = await classify(context.language_model, [memory.scene.action for memory in batch])
        except (LanguageModelUnavailable, UnusableAnswer) as error:
            logger.warning("classifying Business or Private by prototypes: %s", error)
            break
        roots |= {memory.id: root for memory, root in zip(batch, batch_roots, strict=True)}
    return roots


class RootSchema(AnswerSchema):
    number: int
    root: Root


class ClassificationSchema(AnswerSchema):
    roots: list[RootSchema]


async def classify(model: MeteredModel, actions: Sequence[str]) -> list[Root]:
    """A root for each action, in order. Raises `LanguageModelUnavailable`, `UnusableAnswer`."""
    return await model.ask(classify_prompt(actions), ClassificationSchema, partial(roots_of, last=len(actions)))


def classify_prompt(actions: Sequence[str]) -> Prompt:
    lines = [
        json_line({"n": number, "text": quoted(shortened(action, ACTION_CHARACTERS))})
        for number, action in enumerate(actions, start=1)
    ]
    return Prompt(purpose="classify", system=SYSTEM["classify"], text=block(*lines), size="small", max_tokens=2_000)


def roots_of(answer: ClassificationSchema, last: int) -> list[Root] | Rejected:
    """Of the numbers from 1 to `last`, in order."""
    if Counter(item.number for item in answer.roots) != Counter(range(1, last + 1)):
        return Rejected(f"Name each number from 1 to {last} exactly once.")
    by_number = {item.number: item.root for item in answer.roots}
    return [by_number[number] for number in range(1, last + 1)]
