"""A patrol (spec P6, P7): prepare with the model's help, then every step on one working copy, then one transaction."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memory.errors import EmbeddingUnavailable
from memory.ingest.notes import PARSE_FAILED, SCENE, read_scene
from memory.ingest.redaction import clean_note
from memory.model import BeingId, ContentHash, Memory, Note, RunId, Vector, content_hash
from memory.ports import ActivationLog, Embedder, PatrolLedger, WordStatistics
from memory.rules.roots import PROTOTYPES, Root
from memory.rules.secrets import Redact, redacted
from memory.scope import Scope
from patrol.night import Evening, Night
from patrol.report import STEPS, PatrolReport, Pending, StepName, StepReport
from patrol.steps.age import age
from patrol.steps.assign import assign
from patrol.steps.flag import flag
from patrol.steps.merge import merge
from patrol.steps.revive import revive

logger = logging.getLogger(__name__)

WITHOUT_KEY = "[graph] BYOK key not set: skipping ❹❻ diary/think_md (mechanical processing only)"
"""The words of spec P7."""
NEEDS_KEY: frozenset[StepName] = frozenset({"consolidate", "split"})
SPLIT_ABOVE = 10
"""Active memories above which a sub-cluster waits to be split (spec P6 ❻)."""
SHOWN_PENDING = 20

STEP_WORK: Mapping[StepName, Callable[[Night], Awaitable[StepReport]]] = {
    "assign": assign,
    "age": age,
    "flag": flag,
    "revive": revive,
    "merge": merge,
}


@dataclass(frozen=True, slots=True)
class Progress:
    """Step `done` of `total` is finished; `step` is its name."""

    step: StepName
    done: int
    total: int


class Patrol:
    """The use case. One patrol a being at a time."""

    def __init__(
        self,
        ledger: PatrolLedger,
        words: WordStatistics,
        embedder: Embedder,
        activations: ActivationLog,
        *,
        now: Callable[[], datetime],
        wrote: Callable[[], Awaitable[object]] | None = None,
        redact: Redact = redacted,
    ) -> None:
        """`wrote` is awaited after a run that changed something: it brings the changes into the index."""
        self._ledger = ledger
        self._words = words
        self._embedder = embedder
        self._activations = activations
        self._now = now
        self._wrote = wrote
        self._redact = redact
        self._one_at_a_time: dict[BeingId, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(
        self,
        scope: Scope,
        *,
        steps: Sequence[StepName] = STEPS,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> PatrolReport:
        """Run the chosen steps, always in the order ❶ to ❼. A dry run reports what would change and changes nothing.

        `progress` is called after each step and must not block.
        """
        chosen = [name for name in STEPS if name in steps]
        async with self._one_at_a_time[scope.being_id]:
            await self._activations.settle()
            evening = await self._prepare(scope, dry_run=dry_run) if "assign" in chosen else Evening()
            report = await self._walk(scope, chosen, evening, dry_run=dry_run, progress=progress)
            if not dry_run:
                await self._bring_into_index()
            return report

    async def _bring_into_index(self) -> None:
        """The run is committed by now: told as an error, it would be asked for again, and everything would age twice.
        What fails here is made good from the pending marks of the commit."""
        if self._wrote is None:
            return
        try:
            await self._wrote()
        except Exception:
            logger.exception("the patrol is committed, but the index could not be brought up to date yet")

    async def _prepare(self, scope: Scope, *, dry_run: bool) -> Evening:
        """All that needs a model, before the writer is taken."""
        memories, notes = read_notes(
            await self._ledger.unread_notes(scope, type=SCENE), scope, self._now(), self._redact
        )
        sentences = {content_hash(text): text for texts in PROTOTYPES.values() for text in texts}
        texts = sentences | {memory.content_hash: memory.embed_text for memory in memories}
        try:
            vectors = await self._embed(texts)
        except EmbeddingUnavailable as error:
            logger.warning("%s: memories are given their clusters when it can", error)
            return Evening(tuple(memories), tuple(notes))
        if not dry_run:
            await self._ledger.add_vectors(self._embedder.model, vectors)
        return Evening(tuple(memories), tuple(notes), vectors, prototypes(vectors))

    async def _embed(self, texts: Mapping[ContentHash, str]) -> dict[ContentHash, Vector]:
        known = await self._ledger.vectors(self._embedder.model, list(texts))
        missing = [hash_ for hash_ in texts if hash_ not in known]
        if not missing:
            return known
        rows = await self._embedder.embed([texts[hash_] for hash_ in missing])
        return known | dict(zip(missing, rows, strict=True))

    async def _walk(
        self,
        scope: Scope,
        chosen: Sequence[StepName],
        evening: Evening,
        *,
        dry_run: bool,
        progress: Callable[[Progress], None] | None,
    ) -> PatrolReport:
        run_id = RunId(str(uuid.uuid4()))
        started = self._now()
        async with self._ledger.patrol(scope) as transaction:
            night = Night(scope, transaction, self._words, self._embedder.model, evening)
            await night.read()
            reports: list[StepReport] = []
            for name in chosen:
                work = STEP_WORK.get(name)
                reports.append(await work(night) if work else StepReport(name, skipped=WITHOUT_KEY))
                if progress:
                    progress(Progress(name, len(reports), len(chosen)))
            if NEEDS_KEY.intersection(chosen):
                logger.info(WITHOUT_KEY)
            report = PatrolReport(run_id, dry_run, tuple(reports), tuple(pending(night)))
            if not dry_run:
                await transaction.apply(night.changes())
                await transaction.record_run(run_id, started, self._now(), report.as_json())
        return report


def read_notes(
    notes: Sequence[Note], scope: Scope, now: datetime, redact: Redact = redacted
) -> tuple[list[Memory], list[Note]]:
    """Memories of the notes that can be read, and every note as it is to be: those that cannot be read are kept and
    marked `[PARSE_FAILED]` (ruling 1). Secrets are taken out: a note may be older than their redaction."""
    memories: list[Memory] = []
    seen: list[Note] = []
    for note in (replace(one, content=clean_note(one.content, redact)[0]) for one in notes):
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


def pending(night: Night) -> list[Pending]:
    """What ❹ and ❻ would look at, the largest first."""
    waiting: list[Pending] = []
    for cluster in night.clusters.values():
        members = night.members(cluster.id)
        if to_settle := sum(s.status == "dying" or (s.fresh and s.status == "active") for s in members):
            waiting.append(Pending("consolidate", cluster.id, cluster.name, to_settle))
        active = len(night.active(cluster.id))
        if not cluster.is_root and active > SPLIT_ABOVE:
            waiting.append(Pending("split", cluster.id, cluster.name, active))
    return sorted(waiting, key=lambda p: (-p.memories, p.step, p.cluster_id))[:SHOWN_PENDING]
