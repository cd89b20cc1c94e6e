"""❶ Scene notes become memories; memories without a cluster get one; groups under a root become sub-clusters.

spec P6 ❶, rulings 1, 4 and 5.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from madeleine.memory.embedding import VectorByContentHash, cached_vectors_of_any_precision
from madeleine.memory.errors import LanguageModelUnavailable, UnusableAnswer
from madeleine.memory.ingest.notes import PARSE_FAILED_MARK, SCENE_NOTE_TYPE, memory_or_fault_from_scene_note
from madeleine.memory.language_model import MeteredModel, Prompt, RejectedModelAnswer
from madeleine.memory.model import (
    Memory,
    MemoryId,
    Note,
    Scope,
    Vector,
    content_hash,
    model_name_in_both_precisions,
)
from madeleine.memory.patrol_records import MemoryFieldsForPatrol
from madeleine.memory.rules.dynamics import clustering, topics
from madeleine.memory.rules.prompting import escape_tags_on_one_line
from madeleine.memory.rules.storing.secrets import RedactText, redact_note_content, redact_secrets
from madeleine.memory.vector_space import VectorRows, VectorSpace
from madeleine.patrol.context import PatrolRunContext
from madeleine.patrol.deciding.answers import DecisionAnswerSchema
from madeleine.patrol.deciding.rendering import DECISION_SYSTEM_PROMPTS, enclose_in_memory_tag, json_with_escaped_tags
from madeleine.patrol.deciding.requests import shorten_with_ellipsis
from madeleine.patrol.deciding.split import cluster_ids_of_decided_splits
from madeleine.patrol.steps.regroup import (
    RegroupedTopics,
    divide_broad_clusters,
    regroup_loose_memories,
    rename_changed_clusters,
)
from madeleine.patrol.unit_of_work import PreparedStepInputs, UnitOfWork

MAX_ASSIGNMENT_BATCH_MEMORIES = 2_000
"""Memories that are given their clusters in one transaction; calls that store wait for it."""


async def assign_memories_to_clusters(work: UnitOfWork) -> dict[str, int]:
    await work.load_clusters()
    work.notes = work.prepared.notes
    unclustered = work.states_as_changed_in_unit(
        await work.transaction.unclustered_memory_states(limit=MAX_ASSIGNMENT_BATCH_MEMORIES)
    )
    for memory in work.prepared.memories:
        work.add_memory(memory)
    unclustered += await work.load_memory_states([memory.id for memory in work.prepared.memories])
    vectors = await work.load_memory_vectors(unclustered)
    ready = [state for state in unclustered if state.id in vectors] if work.prepared.root_prototypes else []
    work.root_clusters()
    # Vectors of another model are compared with nothing, so without this such a cluster would never be touched again.
    outdated = [
        c.id
        for c in work.non_root_clusters()
        if work.cluster_vector_of_current_model(c) is None and work.active_status_member_count(c.id)
    ]
    await work.recompute_cluster_vectors(outdated)
    counts_before = {cluster.id: work.active_status_member_count(cluster.id) for cluster in work.non_root_clusters()}
    await assign_memories_to_sub_clusters(work, ready, vectors)
    new_under_roots = await assign_memories_to_root_clusters(work, ready, vectors)
    decided = cluster_ids_of_decided_splits(await work.transaction.cluster_size_by_declined_topic())
    regrouped = await regroup_loose_memories(work, decided) if ready else RegroupedTopics()
    placed = [state.cluster_id for state in await work.load_memory_states([state.id for state in ready])]
    roots = {root.id for root in work.root_clusters()}
    left_under_roots = sum(cluster_id in roots for cluster_id in placed)
    touched = {*placed} | regrouped.changed
    touched |= await divide_broad_clusters(work, touched)
    await rename_changed_clusters(work, counts_before, regrouped.young, decided)
    touched |= roots if new_under_roots else set()
    await work.recompute_cluster_vectors(touched)
    failed = sum(note.state == "parse_failed" for note in work.notes)
    return {
        "notes_read": len(work.notes) - failed,
        "notes_failed": failed,
        "assigned": len(ready),
        "to_clusters": len(ready) - left_under_roots,
        "to_roots": left_under_roots,
        "new_clusters": regrouped.founded_count,
        "waiting_for_vectors": len(unclustered) - len(ready),
    }


async def assign_memories_to_sub_clusters(
    work: UnitOfWork, ready: Sequence[MemoryFieldsForPatrol], vectors: Mapping[MemoryId, Vector]
) -> None:
    """Assign each memory to the sub-cluster nearest to it, if that is near enough."""
    targets = [
        (c.id, v) for c in work.non_root_clusters() if (v := work.cluster_vector_of_current_model(c)) is not None
    ]
    if not targets or not ready:
        return
    # Thousands of vectors against thousands: other calls go on meanwhile.
    nearest = await asyncio.to_thread(
        nearest_target_indexes,
        np.stack([vectors[state.id] for state in ready]),
        np.stack([vector for _, vector in targets]),
        work.space,
    )
    for state, target in zip(ready, nearest, strict=True):
        if target is not None:
            work.put_memory_state(replace(state, cluster_id=targets[target][0]))


def nearest_target_indexes(vectors: VectorRows, targets: VectorRows, space: VectorSpace) -> list[int | None]:
    """For each vector the index of the target nearest to it, if that is near enough."""
    own, other = topics.vectors_without_shared_direction(vectors, targets, space)
    cosines = own @ other.T
    near = cosines.max(axis=1) >= clustering.MIN_CLUSTERING_COSINE
    return [int(target) if is_near else None for target, is_near in zip(cosines.argmax(axis=1), near, strict=True)]


async def assign_memories_to_root_clusters(
    work: UnitOfWork, ready: Sequence[MemoryFieldsForPatrol], vectors: Mapping[MemoryId, Vector]
) -> int:
    """Assign the others to Business or Private, as a language model has chosen, else by the prototypes (spec P6 ❶,
    ruling 5); return how many were assigned."""
    count = 0
    for state in await work.load_memory_states([state.id for state in ready]):
        if state.cluster_id is None:
            chosen = work.prepared.chosen_roots.get(state.id)
            root = work.get_or_create_root_cluster_by_name(
                chosen or clustering.nearest_root_cluster(vectors[state.id], work.prepared.root_prototypes)
            )
            work.put_memory_state(replace(state, cluster_id=root.id))
            count += 1
    return count


logger = logging.getLogger(__name__)

MAX_MEMORIES_CLASSIFIED_INTO_ROOT_CLUSTERS = 500
"""Memories that the small model classifies in one patrol; the prototypes do for the others."""
MEMORIES_PER_CLASSIFICATION_CALL = 50
MAX_CLASSIFIED_MEMORY_CHARS = 300
"""Of an action, enough to tell its root."""


# --- with models, before the transaction (spec P6 ❶) --------------------------------------------------------------


async def prepare_cluster_assignment(context: PatrolRunContext) -> PreparedStepInputs:
    services = context.services
    unread = await services.ledger.unread_notes(context.scope, type=SCENE_NOTE_TYPE)
    memories, notes = memories_from_notes(unread, context.scope, services.now(), services.redact)
    sentences = [sentence for sentences in clustering.ROOT_CLUSTER_PROTOTYPE_TEXTS.values() for sentence in sentences]
    embedded = await services.embed([*sentences, *(memory.embedded_text for memory in memories)])
    if embedded.error:
        logger.warning("memories get their clusters at a later patrol: %s", embedded.error)
        return PreparedStepInputs(tuple(memories), tuple(notes))
    vectors = embedded.vectors
    if not context.dry_run:
        await services.ledger.cache_vectors(services.embedding_model_name, vectors)
    prototypes = {
        root: np.stack([vectors[content_hash(sentence)] for sentence in sentences])
        for root, sentences in clustering.ROOT_CLUSTER_PROTOTYPE_TEXTS.items()
    }
    roots = await choose_root_clusters_with_model(context, memories, vectors)
    return PreparedStepInputs(tuple(memories), tuple(notes), vectors, prototypes, roots)


def memories_from_notes(
    notes: Sequence[Note], scope: Scope, now: datetime, redact: RedactText = redact_secrets
) -> tuple[list[Memory], list[Note]]:
    """Memories of the notes that can be read, and every note in its new state: those that cannot be read are kept and
    marked `[PARSE_FAILED]` (ruling 1). Secrets are removed: a note may be older than their redaction."""
    memories: list[Memory] = []
    read: list[Note] = []
    for note in (replace(note, content=redact_note_content(note.content, redact)[0]) for note in notes):
        scene = memory_or_fault_from_scene_note(note, scope, now)
        if isinstance(scene, Memory):
            memories.append(scene)
            read.append(replace(note, state="done", memory_id=scene.id))
        else:
            read.append(replace(note, state="parse_failed", reason=f"{PARSE_FAILED_MARK} {scene}"))
    return memories, read


# --- Business or Private, by a small language model (spec P6 ❶.5) -------------------------------------------------


async def choose_root_clusters_with_model(
    context: PatrolRunContext, new: Sequence[Memory], vectors: VectorByContentHash
) -> dict[MemoryId, clustering.RootClusterName]:
    """For memories near to no sub-cluster, until the token budget or the time limit is reached. Empty without a model,
    or if it does not answer: the prototypes decide then (ruling 5)."""
    if context.language_model is None or context.dry_run:
        return {}
    embedding_model = context.services.embedding_model_name
    unclustered = await context.reads.unclustered_memory_states(limit=MAX_ASSIGNMENT_BATCH_MEMORIES)
    stored = await context.reads.memories_with_ids([state.id for state in unclustered])
    hashes = [state.content_hash for state in unclustered]
    vectors = {**vectors, **await cached_vectors_of_any_precision(context.reads, embedding_model, hashes)}
    targets = [
        cluster.vector
        for cluster in await context.reads.clusters()
        if not cluster.is_root
        and cluster.model in model_name_in_both_precisions(embedding_model)
        and cluster.vector is not None
    ]
    embedded = [memory for memory in (*stored, *new) if memory.content_hash in vectors]
    near: list[int | None] = [None] * len(embedded)
    if embedded and targets:
        rows = np.stack([vectors[memory.content_hash] for memory in embedded])
        near = nearest_target_indexes(rows, np.stack(targets), context.services.embedder.vector_space)
    far = [memory for memory, target in zip(embedded, near, strict=True) if target is None]
    far = far[:MAX_MEMORIES_CLASSIFIED_INTO_ROOT_CLUSTERS]
    roots: dict[MemoryId, clustering.RootClusterName] = {}
    for start in range(0, len(far), MEMORIES_PER_CLASSIFICATION_CALL):
        if context.is_step_out_of_time:
            break
        batch = far[start : start + MEMORIES_PER_CLASSIFICATION_CALL]
        try:
            batch_roots = await classify_memory_texts_into_root_clusters(
                context.language_model, [memory.scene.action for memory in batch]
            )
        except (LanguageModelUnavailable, UnusableAnswer) as error:
            logger.warning("classifying Business or Private by prototypes: %s", error)
            break
        roots |= {memory.id: root for memory, root in zip(batch, batch_roots, strict=True)}
    return roots


class RootChoiceAnswerSchema(DecisionAnswerSchema):
    number: int
    root: clustering.RootClusterName


class RootClusterClassificationAnswerSchema(DecisionAnswerSchema):
    roots: list[RootChoiceAnswerSchema]


async def classify_memory_texts_into_root_clusters(
    model: MeteredModel, actions: Sequence[str]
) -> list[clustering.RootClusterName]:
    """A root for each action, in order. Raises `LanguageModelUnavailable`, `UnusableAnswer`."""
    return await model.answer_prompt(
        prompt_to_classify_into_root_clusters(actions),
        RootClusterClassificationAnswerSchema,
        partial(root_cluster_choices_from_model_answer, count=len(actions)),
    )


def prompt_to_classify_into_root_clusters(actions: Sequence[str]) -> Prompt:
    lines = [
        json_with_escaped_tags(
            {"n": number, "text": escape_tags_on_one_line(shorten_with_ellipsis(action, MAX_CLASSIFIED_MEMORY_CHARS))}
        )
        for number, action in enumerate(actions, start=1)
    ]
    return Prompt(
        purpose="classify",
        system=DECISION_SYSTEM_PROMPTS["classify"],
        text=enclose_in_memory_tag(*lines),
        size="small",
        max_tokens=2_000,
    )


def root_cluster_choices_from_model_answer(
    answer: RootClusterClassificationAnswerSchema, count: int
) -> list[clustering.RootClusterName] | RejectedModelAnswer:
    """Of the numbers from 1 to `count`, in order."""
    if Counter(item.number for item in answer.roots) != Counter(range(1, count + 1)):
        return RejectedModelAnswer(f"Name each number from 1 to {count} exactly once.")
    by_number = {item.number: item.root for item in answer.roots}
    return [by_number[number] for number in range(1, count + 1)]
