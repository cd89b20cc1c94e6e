"""Following an entity: one hop, two, and what was true before (spec O14, ruling 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.graph.graph import ExploreEntityGraph, ExtractGraph
from madeleine.memory.graph.values import RelationWithMemory
from madeleine.memory.model import Memory, MemoryId, Scene
from madeleine.memory.rules.dynamics.truth import Supersession
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, batch, memory
from tests.fakes.graph import InMemoryGraph
from tests.fakes.store import Store

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


def told(action: str, when: str, *actors: str) -> Memory:
    scene = Scene(action=action, when=(when,), actors=actors)
    at = datetime.fromisoformat(when).replace(tzinfo=UTC)
    return memory(scene=scene, happened_at=at, created_at=at)


LINDT = told("Lena works for Lindt.", "2025-01-05", "Lena")
RICOLA = told("Lena works for Ricola.", "2026-03-01", "Lena")
SISTER = told("Ada's sister Lena moved to Bern.", "2026-02-01")
BERN = told("Tom lives in Bern.", "2026-02-02", "Tom")


@pytest.fixture
async def follow() -> ExploreEntityGraph:
    graph = InMemoryGraph(Store())
    await graph.commit_store_batch(ADA, batch(LINDT, SISTER, BERN))
    await graph.commit_store_batch(BOB, batch(memory("Lena is Bob's.", scope=BOB)))
    act = Supersession(old=LINDT.id, new=RICOLA.id, since=MARCH, at=MARCH, tool="store", makes_new=True)
    await graph.commit_store_batch(ADA, replace(batch(RICOLA), supersessions=(act,)))
    return ExploreEntityGraph(graph, ExtractGraph(graph), now=lambda: MOMENT)


def shown(relations: Sequence[RelationWithMemory]) -> list[tuple[str, str, str]]:
    return [(one.relation.subject, one.relation.relation, one.relation.object) for one in relations]


async def test_a_relation_ends_when_its_memory_is_superseded_and_as_of_finds_it(follow: ExploreEntityGraph) -> None:
    now = await follow.find_related(ADA, "LENA")
    assert shown(now.relations) == [
        ("Lena", "works for", "Ricola"), ("Ada", "sister", "Lena"), ("Lena", "moved to", "Bern"),
    ]  # fmt: skip
    assert [one.id for one in now.timeline] == [LINDT.id, SISTER.id, RICOLA.id]
    assert "Lindt" not in [one.name for one in now.neighbours]
    before = await follow.find_related(ADA, "Lena", as_of=datetime(2025, 6, 1, tzinfo=UTC))
    assert shown(before.relations) == [("Lena", "works for", "Lindt")]
    assert [one.id for one in before.timeline] == [LINDT.id]


async def test_the_second_hop_says_through_which_entity_it_came(follow: ExploreEntityGraph) -> None:
    one_hop = await follow.find_related(ADA, "Ada")
    assert {one.name for one in one_hop.neighbours} == {"Lena", "Bern", "2026-02-01"}
    two = await follow.find_related(ADA, "Ada", hops=2)
    further = {one.name: one.via for one in two.neighbours if one.hops == 2}
    assert further == {"Tom": "Bern", "2026-02-02": "Bern", "Ricola": "Lena", "2026-03-01": "Lena"}
    assert ("Lena", "works for", "Ricola") in shown(two.relations)


async def test_a_part_of_one_name_finds_it_and_an_unknown_name_nothing(follow: ExploreEntityGraph) -> None:
    assert (found := (await follow.find_related(ADA, "rico")).entity) is not None
    assert found.name == "Ricola"
    nothing = await follow.find_related(ADA, "Zoe")
    assert (nothing.entity, nothing.named_like) == (None, [])
    assert [one.name for one in await follow.most_mentioned_entities(ADA, limit=2)] == ["Lena", "Bern"]
    assert await follow.most_mentioned_entities(BOB, limit=9) != []


async def test_what_is_stated_is_redacted_holds_with_its_memory_and_is_taken_back(follow: ExploreEntityGraph) -> None:
    secret = "sk-ant-api03-" + "a" * 95
    stated = await follow.change_stated_relations(ADA, BERN.id, [("Tom", "is the cousin of", f"Ada {secret}")])
    assert (stated.count, sum(stated.redacted.values())) == (1, 1)
    assert secret not in str(await follow.find_related(ADA, "Tom"))
    for wrong in (("Tom", "is", "TOM"), ("Tom", "knows", "Ada")):
        with pytest.raises(InvalidInput):
            await follow.change_stated_relations(ADA, BERN.id if wrong[2] == "TOM" else MemoryId("none"), [wrong])
    assert (await follow.change_stated_relations(ADA, BERN.id, [("Tom", "knows", "Ada")])).count == 1
    assert ("Tom", "knows", "Ada") in shown((await follow.find_related(ADA, "Ada")).relations)
    assert (await follow.change_stated_relations(ADA, BERN.id, [("tom", "knows", "ada")], remove=True)).count == 1
    assert ("Tom", "knows", "Ada") not in shown((await follow.find_related(ADA, "Ada")).relations)
