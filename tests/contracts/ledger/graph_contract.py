"""What the ledger promises of the entity graph (spec O14), for every implementation."""

from __future__ import annotations

from dataclasses import dataclass

from madeleine.memory.graph.graph import ExtractGraph
from madeleine.memory.graph.ports import GraphExtractionLedger, GraphLedger
from madeleine.memory.graph.values import EntityMention, MemoryWithExtractedEntities, RelationTriple
from madeleine.memory.model import Memory, MemoryChanges, Scene
from tests.contracts.ledger.any_ledger import MemoryPorts
from tests.contracts.ledger.ledger_values import ADA, BOB, MODEL, MOMENT, batch, memory


@dataclass(frozen=True)
class LedgerWithGraph:
    memories: MemoryPorts
    graph_extraction: GraphExtractionLedger
    graph: GraphLedger


def relation(of: Memory, subject: str, words: str, object_: str) -> RelationTriple:
    return RelationTriple(of.id, subject, words, object_, stated=True)


class GraphContract:
    async def test_memories_are_drawn_once_and_again_when_they_change(self, ledger: LedgerWithGraph) -> None:
        """A memory that was changed since it was read is not written as it was."""
        one, other = memory("Ada met Ben Okri."), memory("Bob met Carla Rossi.", scope=BOB)
        await ledger.memories.commit_store_batch(ADA, batch(one))
        await ledger.memories.commit_store_batch(BOB, batch(other))
        assert [found.id for found in await ledger.graph_extraction.memories_to_extract_from(limit=9)] == [
            one.id,
            other.id,
        ]
        assert [
            found.id for found in await ledger.graph_extraction.memories_to_extract_from(limit=9, after=one.id)
        ] == [other.id]
        assert len(await ledger.graph_extraction.memories_to_extract_from(limit=1, after=memory().id)) == 1
        assert await ExtractGraph(ledger.graph_extraction)()
        assert await ledger.graph_extraction.memories_to_extract_from(limit=9) == []
        for changes in (MemoryChanges(text="Ada met Dora Maar."), MemoryChanges(themes=("friends",))):
            await ledger.memories.change_memory(ADA, one.id, changes, at=MOMENT, model=MODEL, vectors={})
            assert len(await ledger.graph_extraction.memories_to_extract_from(limit=9)) == 1
            await ledger.graph_extraction.write_extracted_entities(
                [MemoryWithExtractedEntities(one, [EntityMention(one.id, "Late", "name")], [])]
            )
            assert [found.id for found in await ledger.graph_extraction.memories_to_extract_from(limit=9)] == [one.id]
            await ExtractGraph(ledger.graph_extraction)()
        assert [mention.name for mention in await ledger.graph.entity_mentions_in_memories(ADA, [one.id])] == [
            "Dora Maar",
            "friends",
        ]
        await ledger.graph_extraction.write_extracted_entities(
            [MemoryWithExtractedEntities(memory("It is gone."), [], [])]
        )
        assert await ledger.graph.entity_mentions_in_memories(BOB, [one.id]) == []

    async def test_entities_are_counted_by_memories_and_found_by_a_part_of_their_name(
        self, ledger: LedgerWithGraph
    ) -> None:
        told = [
            memory("Tea", scene=Scene(action="Tea", actors=("Mia Berger",)), themes=("tea",)),
            memory("Tea with MIA BERGER", scene=Scene(action="More tea", actors=("mia berger", "Ben"))),
            memory("Cake", scene=Scene(action="Cake", actors=("Mia Berger",), setting="Bern")),
        ]
        await ledger.memories.commit_store_batch(ADA, batch(*told))
        await ledger.memories.commit_store_batch(
            BOB, batch(memory("x", scope=BOB, scene=Scene(action="x", actors=("Mia Noll",))))
        )
        await ExtractGraph(ledger.graph_extraction)()
        mia = await ledger.graph.entity_by_key(ADA, "mia berger")
        assert mia is not None
        assert (mia.name, mia.kind, mia.memories) == ("Mia Berger", "actor", 3)
        assert [
            (one.key, one.memories) for one in await ledger.graph.entities_whose_name_contains(ADA, "", limit=9)
        ] == [
            ("mia berger", 3),
            ("ben", 1),
            ("bern", 1),
            ("tea", 1),
        ]
        assert [one.name for one in await ledger.graph.entities_whose_name_contains(ADA, "mia", limit=9)] == [
            "Mia Berger"
        ]
        assert await ledger.graph.entity_by_key(ADA, "mia") is None
        assert await ledger.graph.entity_by_key(ADA, "mia noll") is None
        naming = await ledger.graph.memories_naming_entities(ADA, ["mia berger", "bern"], limit=2)
        assert [one.id for one in naming] == [told[2].id, told[1].id]
        assert await ledger.graph_extraction.known_entity_keys_among(ADA, {"ben", "bern", "mia noll"}) == {"ben"}

    async def test_relations_are_stated_once_of_own_memories_and_stand_first(self, ledger: LedgerWithGraph) -> None:
        older, newer = memory("Ben Okri works for Carla Rossi."), memory("Ben Okri cooks for Carla Rossi.")
        other = memory("Bob's", scope=BOB)
        await ledger.memories.commit_store_batch(ADA, batch(older, newer))
        await ledger.memories.commit_store_batch(BOB, batch(other))
        await ExtractGraph(ledger.graph_extraction)()
        stated = [
            relation(older, "Ben Okri", "works for", "Carla Rossi"),
            relation(older, "Carla Rossi", "likes", "Zoe"),
        ]
        assert await ledger.graph.add_stated_relations(ADA, [*stated, stated[0]], at=MOMENT) == 2
        assert await ledger.graph.add_stated_relations(ADA, [stated[0], relation(other, "a", "b", "c")], at=MOMENT) == 0
        found = await ledger.graph.relations_of_entities(ADA, ["carla rossi"], limit=9)
        drawn = RelationTriple(newer.id, "Ben Okri", "cooks for", "Carla Rossi")
        assert found == [*stated, drawn]
        assert await ledger.graph.relations_of_entities(BOB, ["carla rossi"], limit=9) == []
        assert [one.memories for one in await ledger.graph.entities_whose_name_contains(ADA, "zoe", limit=9)] == [1]
        assert await ledger.graph.remove_relations_stated_by_agents(BOB, stated, at=MOMENT) == 0
        assert await ledger.graph.remove_relations_stated_by_agents(ADA, [*stated, drawn], at=MOMENT) == 2
        assert await ledger.graph.relations_of_entities(ADA, ["zoe"], limit=9) == []

    async def test_what_was_retracted_is_left_out_and_what_was_superseded_is_not(self, ledger: LedgerWithGraph) -> None:
        wrong, kept = memory("Ada met Ben Okri."), memory("Ada called Ben Okri.")
        await ledger.memories.commit_store_batch(ADA, batch(wrong, kept))
        await ExtractGraph(ledger.graph_extraction)()
        await ledger.memories.retract(ADA, wrong.id, "no", at=MOMENT)
        assert [one.id for one in await ledger.graph.memories_naming_entities(ADA, ["ben okri"], limit=9)] == [kept.id]
        assert {one.memory_id for one in await ledger.graph.relations_of_entities(ADA, ["ben okri"], limit=9)} <= {
            kept.id
        }
