"""The contract of `MemoryBackend`, `MemoryCapabilities`, `SharedKnowledgeStore` and `OrgMemoryBackend` (spec O3 to O5).

A subclass has the fixture `backend`, a connected one that keeps nothing of other tests.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from madeleine.backends import (
    CoreBlockEdit,
    CoreBlockStore,
    InMemoryBackend,
    MadeleineBackend,
    MemoryBackend,
    MemoryCapabilities,
    MemoryConnectionError,
    MemoryMetadata,
    MemoryQuery,
    MemoryStoreError,
    MemoryStoreRequest,
    OrgFactAuthor,
    OrgFactWriteRequest,
    OrgMemoryBackend,
    OrgMemoryQuery,
    SharedKnowledgeStore,
)
from madeleine.memory.model import Category, KnowledgeKind, Role

Backend = MadeleineBackend | InMemoryBackend


def told(content: str, category: Category = "episodic", *tags: str) -> MemoryStoreRequest:
    return MemoryStoreRequest(category=category, content=content, metadata=MemoryMetadata(tags=tags))


def by(agent: str, role: Role) -> OrgFactAuthor:
    return OrgFactAuthor(agent_id=agent, role=role)


def fact(content: str, kind: KnowledgeKind, supersedes: str | None = None) -> OrgFactWriteRequest:
    return OrgFactWriteRequest(category=kind, content=content, supersedes=supersedes)


class BackendContract:
    async def test_it_is_all_it_says_at_run_time(self, backend: Backend) -> None:
        for protocol in (MemoryBackend, MemoryCapabilities, SharedKnowledgeStore, OrgMemoryBackend, CoreBlockStore):
            assert isinstance(backend, protocol)
        assert backend.is_connected
        assert await backend.health_check()
        assert "semantic" in backend.supported_categories
        assert backend.supports_shared_access

    async def test_what_an_agent_stores_it_alone_retrieves_gets_counts_and_deletes(self, backend: Backend) -> None:
        lamp = await backend.store("ada", told("The lamp in the hall is broken", "episodic", "house"))
        door = await backend.store("ada", told("Visitors use the green door", "semantic"))
        [found] = await backend.retrieve("ada", MemoryQuery(text="Which lamp is broken?", limit=1))
        assert (found.id, found.agent_id, found.content) == (lamp, "ada", "The lamp in the hall is broken")
        assert found.relevance_score
        assert await backend.retrieve("bo", MemoryQuery(text="Which lamp is broken?")) == ()
        entry = await backend.get("ada", lamp)
        assert entry is not None
        assert (entry.category, entry.metadata.tags) == ("episodic", ("house",))
        assert await backend.count("ada") == 2
        assert await backend.count("ada", category="semantic") == 1
        assert await backend.count("bo") == 0
        assert not await backend.delete("bo", "m999")
        assert await backend.delete("ada", lamp)
        assert not await backend.delete("ada", lamp)
        assert await backend.get("ada", lamp) is None
        assert [one.id for one in await backend.retrieve("ada", MemoryQuery())] == [door]

    async def test_a_core_block_is_edited_from_its_current_version_alone_and_seen_by_its_agent(
        self, backend: Backend
    ) -> None:
        """spec O12"""
        await backend.edit_core_block("ada", CoreBlockEdit(name="human", text="Lives in Bern."))
        second = await backend.edit_core_block("ada", CoreBlockEdit(name="human", version=1, old="Bern", text="Thun"))
        assert (second.version, second.text) == (2, "Lives in Thun.")
        for wrong in (
            CoreBlockEdit(name="human", version=1, text="x"),
            CoreBlockEdit(name="human", text="x"),
            CoreBlockEdit(name="human", version=2, old="Bern", text="x"),
            CoreBlockEdit(name="human", version=2, text="x" * 2_001),
        ):
            with pytest.raises(MemoryStoreError):
                await backend.edit_core_block("ada", wrong)
        await backend.edit_core_block("ada", CoreBlockEdit(name="human", version=2, text="Has a cat.", append=True))
        [block] = await backend.core_blocks("ada")
        assert (block.version, block.text) == (3, "Lives in Thun.\nHas a cat.")
        assert await backend.core_blocks("bo") == ()

    async def test_without_a_text_the_latest_come_filtered_by_tags_and_categories(self, backend: Backend) -> None:
        for number in range(3):
            await backend.store("ada", told(f"Train number {number} was late", "episodic", "trains"))
        await backend.store("ada", told("Lunch is at noon", "semantic"))
        latest = await backend.retrieve("ada", MemoryQuery(tags=("trains",), limit=2))
        assert [one.content for one in latest] == ["Train number 2 was late", "Train number 1 was late"]
        [lunch] = await backend.retrieve("ada", MemoryQuery(categories=("semantic",)))
        assert lunch.content == "Lunch is at noon"

    async def test_what_is_published_all_find_and_only_its_author_retracts(self, backend: Backend) -> None:
        shared = await backend.publish("ada", told("The staging server is reset on Mondays", "semantic", "staging"))
        query = MemoryQuery(text="When is the staging server reset?")
        [found] = await backend.search_shared(query)
        assert (found.id, found.agent_id, found.metadata.author) == (shared, "ada", "ada")
        assert await backend.search_shared(query, exclude_agent="ada") == ()
        assert await backend.count("bo") == 0
        with pytest.raises(MemoryStoreError):
            await backend.retract("bo", shared)
        assert await backend.retract("ada", shared)
        assert not await backend.retract("ada", shared)
        assert not await backend.retract("ada", "s999")
        assert await backend.search_shared(query) == ()

    async def test_a_role_writes_what_the_table_says(self, backend: Backend) -> None:
        """spec O4: policies by humans, decisions and procedures by all but plain agents."""
        roles: tuple[Role, ...] = ("human", "c_suite", "lead", "senior", "agent")
        for role in roles:
            for kind, writers in (("policy", 1), ("decision", 4), ("procedure", 4), ("knowledge", 5)):
                request = fact(f"{kind} of {role}", kind)  # type: ignore[arg-type]
                if roles.index(role) < writers:
                    assert await backend.write(request, author=by("x", role))
                else:
                    with pytest.raises(MemoryStoreError):
                        await backend.write(request, author=by("x", role))
        assert [one.content for one in await backend.list_policies()] == ["policy of human"]

    async def test_a_version_takes_the_place_of_a_fact_and_leaves_its_history(self, backend: Backend) -> None:
        hana = by("hana", "human")
        old = await backend.write(fact("PRs need two approvals", "policy"), author=hana)
        between = datetime.now(UTC)
        new = await backend.write(fact("PRs need one approval", "policy", old), author=hana)
        assert [one.id for one in await backend.list_policies()] == [new]
        [before] = await backend.query(OrgMemoryQuery(categories=("policy",), as_of=between))
        assert (before.id, before.content, before.author) == (old, "PRs need two approvals", hana)
        with pytest.raises(MemoryStoreError):
            await backend.write(fact("PRs need none", "policy", old), author=hana)
        with pytest.raises(MemoryStoreError):
            await backend.write(fact("PRs need none", "knowledge", new), author=by("ada", "agent"))

    async def test_a_query_brings_the_fact_that_matches_and_without_one_all_policies_first(
        self, backend: Backend
    ) -> None:
        await backend.write(fact("We chose JWT over sessions", "decision"), author=by("bo", "senior"))
        await backend.write(fact("Deploys happen on Tuesdays", "procedure"), author=by("bo", "senior"))
        await backend.write(fact("No commits to main", "policy"), author=by("hana", "human"))
        [best, *_] = await backend.query(OrgMemoryQuery(text="Why did we choose JWT sessions?"))
        assert (best.category, best.author.agent_id) == ("decision", "bo")
        [first, *_] = await backend.query(OrgMemoryQuery())
        assert first.category == "policy"
        assert await backend.query(OrgMemoryQuery(text="Why did we choose JWT?", categories=("policy",))) == ()

    async def test_before_connecting_and_after_everything_is_refused(self, backend: Backend) -> None:
        await backend.connect()  # again: nothing
        await backend.disconnect()
        await backend.disconnect()
        assert not backend.is_connected
        assert not await backend.health_check()
        for use in (
            lambda: backend.store("ada", told("Lost")),
            lambda: backend.retrieve("ada", MemoryQuery()),
            lambda: backend.search_shared(MemoryQuery(text="x")),
            lambda: backend.query(OrgMemoryQuery()),
        ):
            with pytest.raises(MemoryConnectionError):
                await use()
