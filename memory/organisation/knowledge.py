"""What an organisation knows (spec O4, O5): shared by one being, read by all, changed by versions.

It is the memory of a being of its own, `ORGANISATION_BEING_ID`, which no connection serves. This use case is the only
way into it, and the one place where the right to write is decided: whatever calls it, a role that may not write a kind
cannot."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.audit import RecordAuditEvent
from madeleine.memory.errors import InvalidInput, NotPermitted
from madeleine.memory.ingest.new_scene import NewScene, redact_scene
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.ingest.truth import ChangeMemoryTruth
from madeleine.memory.ingest.update_and_forget import ForgetMemories, ForgetOutcome
from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import (
    ORGANISATION_BEING_ID,
    ORGANISATION_KNOWLEDGE_KINDS,
    KnowledgeKind,
    Memory,
    MemoryId,
    Scene,
    Scope,
    content_hash,
    embedded_text,
)
from madeleine.memory.organisation.ports import SharedKnowledgeReader
from madeleine.memory.permissions import KnowledgeWriteAccess, permissions_of_role
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.dynamics.truth import TruthChangeOutcome
from madeleine.memory.rules.ranking.profiles import LinearRankingWeights

SHARE_TOOL_NAME, RETRACT_TOOL_NAME = "share", "retract"
MAX_POLICY_CHARS = 500
"""Of a policy, which is part of every prompt."""
MAX_LISTED_KNOWLEDGE = 500
KNOWLEDGE_CANDIDATES_PER_RESULT = 4
"""Looked for, where only some kinds are asked for (spec L2, step 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisationKnowledgeConfig:
    """`max_policies`: current ones, all of them in every prompt (spec O4: 5 to 10). `max_retrieved`: shared facts that
    one query brings. `personal_boost`: added to the score of what is the being's own (spec O12)."""

    write_access: KnowledgeWriteAccess = field(default_factory=KnowledgeWriteAccess)
    max_policies: int = 10
    max_retrieved: int = 5
    personal_boost: float = LinearRankingWeights().personal_boost


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKnowledge:
    """`source`: a memory of the caller's own, whose text, dates, themes and lesson are shared in place of `scene`'s.
    `supersedes`: what all share and is true until the scene's date, or until now; of the same kind."""

    kind: KnowledgeKind
    scene: Scene | None = None
    source: MemoryId | None = None
    themes: tuple[str, ...] = ()
    supersedes: MemoryId | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAndSharedSearchResult:
    """Own memories and what all share, best first by one score."""

    found: tuple[tuple[Memory, float], ...]
    notices: tuple[str, ...] = ()
    words_only_reason: str = ""


def caller_scope_in_organisation(scope: Scope) -> Scope:
    """What the caller does there is its own act: it is the author."""
    shared = replace(scope, being_id=ORGANISATION_BEING_ID, author=scope.being_id, count_activations=False)
    return replace(shared, project="", level="persistent")


@dataclass(frozen=True, eq=False)
class OrganisationKnowledge:
    """The use case. `scope` is always that of the caller."""

    ledger: SharedKnowledgeReader
    truth: ChangeMemoryTruth
    forget: ForgetMemories
    recall: RecallMemories
    audit: RecordAuditEvent
    _: KW_ONLY
    config: OrganisationKnowledgeConfig = field(default_factory=OrganisationKnowledgeConfig)
    _counting: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def share(self, scope: Scope, new: NewKnowledge) -> StoredSceneResult:
        """Add a fact that all may read, or a version in place of one. What all know already, word for word, is returned
        as it is, with `repeated`.

        Raises `NotPermitted`, `InvalidInput` (one policy too many, another kind, no such memory), `KeyConflict`,
        `NotCurrent`, `StorageError`.
        """
        self._require_right_to_write(scope, new.kind)
        scene = await self._scene_to_share(scope, new)
        if new.kind == "policy" and len(scene.scene.action) > MAX_POLICY_CHARS:
            raise InvalidInput(
                f"A policy is part of every prompt and has at most {MAX_POLICY_CHARS} characters. Nothing was shared: "
                "shorten it, and share the details as a procedure."
            )
        if new.supersedes is not None:
            await self._require_same_kind(scope, new.supersedes, new.kind)
        async with self._counting:
            if new.supersedes is None and (known := await self._current_fact_with_same_text(scope, scene)):
                return StoredSceneResult(memory=known, status="stored", repeated=True)
            if new.kind == "policy" and new.supersedes is None:
                await self._require_room_for_policy("Nothing was shared")
            [stored] = await self.truth.store(caller_scope_in_organisation(scope), [scene])
        return stored

    async def retract(self, scope: Scope, id_: MemoryId, reason: str) -> TruthChangeOutcome:
        """It was wrong: no longer found, but kept with its author. Raises `NotPermitted`, `NotCurrent`,
        `InvalidInput`."""
        await self._require_right_to_change(scope, [id_])
        return await self.truth.retract(caller_scope_in_organisation(scope), id_, reason)

    async def undo_last_truth_change(self, scope: Scope, id_: MemoryId) -> TruthChangeOutcome:
        """Take back the last supersession or retraction that concerned it. Only for roles that may change what others
        have shared: the act may have been another's. Raises `NotPermitted`, `CannotUndo`, `InvalidInput`."""
        [fact] = await self._require_right_to_change(scope, [id_], as_author=False)
        async with self._counting:
            if fact.knowledge == "policy":
                chain = (await self.versions(scope, [id_])).get(id_, [])
                if all(version.truth != "current" for version in chain):  # else one goes for the one that comes back
                    await self._require_room_for_policy("Nothing was taken back")
            return await self.truth.undo(caller_scope_in_organisation(scope), id_)

    async def erase(self, scope: Scope, id_: MemoryId) -> ForgetOutcome:
        """Erase it for good, as `forget` does (ruling 11). Raises `NotPermitted`, `InvalidInput`."""
        if "erase" not in permissions_of_role(scope.role):
            raise NotPermitted(RETRACT_TOOL_NAME, permission="erase", role=scope.role)
        await self._require_right_to_change(scope, [id_])
        return await self.forget(caller_scope_in_organisation(scope), [id_])

    async def list_knowledge(
        self, kinds: Sequence[KnowledgeKind] = (), *, as_of: datetime | None = None
    ) -> list[Memory]:
        """What is true now, or was true then, newest first."""
        return await self.ledger.knowledge_of_kinds(
            kinds or ORGANISATION_KNOWLEDGE_KINDS, as_of=as_of, limit=MAX_LISTED_KNOWLEDGE
        )

    async def versions(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """All versions of each that exists, the current one last, with their authors."""
        return await self.ledger.all_versions_by_memory_id(caller_scope_in_organisation(scope), ids)

    async def search(
        self,
        scope: Scope,
        query: RecallQuery,
        *,
        kinds: Sequence[KnowledgeKind] = (),
        personal: bool = True,
        language: LanguageModel | None = None,
    ) -> OwnAndSharedSearchResult:
        """What matches among what all share, and with `personal` among the caller's own memories, ranked together. Own
        ones have the personal boost (spec O12). At most `query.limit`, of what is shared at most `max_retrieved`."""
        most_shared = min(query.limit, self.config.max_retrieved)
        among = KNOWLEDGE_CANDIDATES_PER_RESULT * most_shared if kinds else most_shared
        shared_query = replace(query, limit=among, max_limit=0)
        shared = await self.recall(caller_scope_in_organisation(scope), shared_query, language=language)
        of_kinds = [(one, score) for one, score in shared.memories if not kinds or one.knowledge in kinds]
        found = of_kinds[:most_shared]
        notices, words_only_reason = shared.notices, shared.words_only_reason
        if personal:
            own = await self.recall(scope, replace(query, max_limit=0), language=language)
            boost = self.config.personal_boost
            found += [(one, min(1.0, score + boost)) for one, score in (*own.preferences, *own.memories)]
            notices = tuple(dict.fromkeys((*notices, *own.notices)))
            words_only_reason = words_only_reason or own.words_only_reason
        best = sorted(found, key=lambda scored: -scored[1])[: query.limit]
        return OwnAndSharedSearchResult(
            found=tuple((one, round(score, 4)) for one, score in best),
            notices=notices,
            words_only_reason=words_only_reason,
        )

    def audit_recall(self, scope: Scope, tool: str, shown: Sequence[Memory]) -> None:
        """Record what an answer shows, of each owner."""
        for owner in (scope, caller_scope_in_organisation(scope)):
            if ids := [one.id for one in shown if one.being_id == owner.being_id]:
                self.audit(owner, "recall", tool=tool, ids=ids)

    # --- rights

    def _require_right_to_write(self, scope: Scope, kind: KnowledgeKind) -> None:
        access = self.config.write_access
        if not access.may_write(scope.role, kind):
            raise KnowledgeNotWritable(kind, scope.role, access.roles_by_knowledge_kind[kind])

    async def _require_right_to_change(
        self, scope: Scope, ids: Sequence[MemoryId], *, as_author: bool = True, tool: str = RETRACT_TOOL_NAME
    ) -> list[Memory]:
        known = await self._shared_facts_with_ids(scope, ids)
        access = self.config.write_access
        for fact in known:
            kind = fact.knowledge or "policy"
            is_author = as_author and fact.provenance.author == scope.being_id
            self._require_right_to_write(scope, kind)
            if not access.role_may_change(scope.role, kind, is_author=is_author):
                raise NotPermitted(tool, permission="change what others have shared", role=scope.role)
        return known

    async def _require_same_kind(self, scope: Scope, id_: MemoryId, kind: KnowledgeKind) -> None:
        """So that whoever may write a kind changes nothing of another by an act, or by taking it back."""
        [old] = await self._require_right_to_change(scope, [id_], tool=SHARE_TOOL_NAME)
        if old.knowledge != kind:
            raise InvalidInput(
                f"{old.short_id} is a {old.knowledge}, which only another {old.knowledge} can supersede. Nothing was "
                f"shared: give kind {old.knowledge}, or retract {old.short_id} and share this without supersedes."
            )

    async def _shared_facts_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        known = await self.truth.store.ledger.memories_with_ids(caller_scope_in_organisation(scope), ids)
        if missing := set(ids) - {one.id for one in known}:
            raise InvalidInput(
                f"Nothing that is shared has the id {min(missing)!r}. Nothing was changed: take an id such as s3, as "
                "search_shared returns it."
            )
        return known

    # --- what is to be stored

    async def _scene_to_share(self, scope: Scope, new: NewKnowledge) -> NewScene:
        scene, themes, lesson = new.scene, new.themes, ""
        if new.source is not None:
            known = await self.truth.store.ledger.memories_with_ids(scope, [new.source])
            if not known:
                raise InvalidInput(f"There is no memory {new.source!r} of yours. Nothing was shared.")
            own = known[0]
            scene = Scene(action=own.scene.action, when=own.scene.when)
            themes, lesson = themes or own.themes, own.lesson
        if scene is None:
            raise InvalidInput("Nothing was shared. Give text, or the id of a memory of your own.")
        return NewScene(
            scene=scene,
            category="semantic",
            themes=themes,
            lesson=lesson,
            tool=SHARE_TOOL_NAME,
            key=_idempotency_key_of_author(scope, new.key),
            supersedes=new.supersedes,
            knowledge=new.kind,
            distinct=True,  # it never counts as another's telling: each has its own author
        )

    async def _current_fact_with_same_text(self, scope: Scope, new: NewScene) -> Memory | None:
        store = self.truth.store
        redacted, _ = redact_scene(new, store.redact)
        text = content_hash(embedded_text(redacted.scene, redacted.feeling))
        shared = caller_scope_in_organisation(scope)
        same = await store.ledger.memories_with_ids(shared, await store.ledger.ids_with_content_hash(shared, text))
        return next((one for one in same if one.truth == "current" and one.knowledge == new.knowledge), None)

    async def _require_room_for_policy(self, outcome: str) -> None:
        """For one more policy. `outcome`: what the refusal says of the call."""
        most = self.config.max_policies
        if len(await self.ledger.knowledge_of_kinds(["policy"], limit=most)) >= most:
            raise InvalidInput(
                f"There are {most} policies, which is the most: all of them are in every prompt. {outcome}: "
                "supersede or retract one, or share it as a convention or procedure, which is found when it matters."
            )


class KnowledgeNotWritable(NotPermitted):
    """The role may not write this kind of shared knowledge."""

    def __init__(self, kind: KnowledgeKind, role: str, writers: frozenset[str]) -> None:
        super().__init__("share", permission=f"write a {kind}", role=role)
        who = ", ".join(sorted(writers)) or "nobody"
        self.args = (
            f"A {kind} is written by {who}, and this connection has the role {role!r}. Nothing was done: ask "
            f"a person for it{'' if kind == 'knowledge' else ', or share it as knowledge'}.",
        )


def _idempotency_key_of_author(scope: Scope, key: str | None) -> str | None:
    """Idempotency keys are each author's own."""
    return hashlib.sha256(f"{scope.being_id}\n{key}".encode()).hexdigest() if key else None
