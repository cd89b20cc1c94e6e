"""What a program can do with a memory, the same over the host's socket and over HTTP."""

from __future__ import annotations

import asyncio
from datetime import date
from functools import partial
from typing import Any

import pytest

import madeleine
from tests.library.conftest import Connections


async def test_what_one_connection_stores_another_recalls(connections: Connections) -> None:
    async with connections.connect() as first, connections.connect() as second:
        stored = await first.store("The lamp in the hall is broken", actors=["Ada"], when=date(2026, 3, 1))
        assert (stored.id, stored.status) == ("m1", "stored")
        recalled = await second.recall("The lamp in the hall")
        assert [memory.id for memory in recalled.memories] == [stored.id]
        assert recalled.count == 1
        assert (recalled.memories[0].when, recalled.memories[0].actors) == ("2026-03-01", ("Ada",))
        assert recalled.memories[0].provenance.client == "madeleine library"
        by_full_id = await second.memories([recalled.memories[0].provenance.full_id])
        assert [memory.id for memory in by_full_id.memories] == [stored.id]


async def test_a_memory_is_updated_shown_whole_and_forgotten(connections: Connections) -> None:
    async with connections.connect() as memory:
        stored = await memory.store("The lamp is broken", themes=["house"], pinned=True, key="lamp")
        assert (await memory.store("The lamp is broken", themes=["house"], pinned=True, key="lamp")).repeated
        updated = await memory.update(stored.id, text="The lamp is repaired", importance=0.75)
        assert updated.changed == ("text", "importance")
        page = await memory.memories([stored.id, "nobody"])
        [complete] = page.memories
        assert (complete.text, complete.importance, complete.pinned) == ("The lamp is repaired", 0.75, True)
        assert (complete.themes, complete.history[0].text) == (("house",), "The lamp is broken")
        assert page.missing == ("nobody",)
        assert (await memory.forget([stored.id])).erased == (stored.id,)
        assert (await memory.memories([stored.id])).missing == (stored.id,)


async def test_none_stands_for_an_argument_that_is_left_out(connections: Connections) -> None:
    """Which callers pass on; `null` is refused by the tools."""
    left_out: Any = {"when": None, "as_of": None}
    async with connections.connect() as memory:
        await memory.store("The lamp is broken", when=left_out["when"])
        assert (await memory.recall("Which lamp is broken?", as_of=left_out["as_of"])).memories


async def test_several_scenes_are_kept_by_one_call(connections: Connections) -> None:
    async with connections.connect() as memory:
        answer = await memory.store_scenes([{"text": "The lamp is broken", "when": date(2026, 3, 1)}, {"text": " "}])
        kept, refused = answer.scenes
        assert (kept.id, kept.status, refused.id) == ("m1", "stored", "")
        assert "text: is empty" in refused.refused
        [complete] = (await memory.memories([kept.id])).memories
        assert complete.when == "2026-03-01"


async def test_a_search_goes_on_page_by_page(connections: Connections) -> None:
    async with connections.connect() as memory:
        for number in (1, 2, 3):
            await memory.store(f"The lamp has number {number}", when="2026-03-01")
        lamps = partial(memory.search, "lamp", sources=["memories"], limit=2, since=date(2026, 1, 1))
        first = await lamps()
        second = await lamps(cursor=first.next_cursor)
        assert (len(first.hits), len(second.hits), second.next_cursor) == (2, 1, "")
        assert {hit.source for hit in first.hits} == {"memories"}


async def test_a_search_finds_another_form_of_a_word(connections: Connections) -> None:
    """ruling 19, ADR 79"""
    async with connections.connect() as memory:
        await memory.store("Maria studies architecture in Porto")
        page = await memory.search("studying")
    assert [hit.text for hit in page.hits] == ["Maria studies architecture in Porto"]
    assert "'studies' was searched instead" in page.notice


async def test_recall_gives_fragments_or_a_prompt_with_their_sources(connections: Connections) -> None:
    async with connections.connect() as memory:
        stored = await memory.store("The lamp is broken", feeling="I am annoyed")
        fragments = await memory.recall("The lamp is broken", format="fragments")
        prompt = await memory.recall("The lamp is broken", format="prompt")
        assert fragments.fragments.startswith("<recall>")
        assert prompt.prompt.startswith("<memory>")
        assert [source.id for source in (*fragments.sources, *prompt.sources)] == [stored.id, stored.id]


async def test_a_patrol_reports_its_steps_and_can_be_undone(connections: Connections) -> None:
    messages: list[str | None] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    async with connections.connect() as memory:
        await memory.store("The lamp is broken")
        report = await memory.patrol(steps=["assign", "age"], on_progress=on_progress)
        assert [step.name for step in report.steps] == ["assign", "age"]
        assert report.steps[0].counts["assigned"] == 1
        assert messages
        assert [cluster.name for cluster in await memory.clusters() if cluster.is_root]
        assert (await memory.patrol(undo=report.run_id)).run_id == report.run_id
        with pytest.raises(madeleine.CannotUndo):
            await memory.patrol(undo=report.run_id)


async def test_a_context_is_one_prompt_and_its_blocks(connections: Connections) -> None:
    async with connections.connect() as memory:
        await memory.store("The lamp is broken")
        context = await memory.context(message="The lamp is broken", token_limit=2_000)
        assert "The lamp is broken" in context.prompt
        assert context.recent_nodes is not None
        assert context.tokens["limit"] == 2_000
        assert (await memory.context(enable_memories=False)).memories is None


async def test_calls_of_one_connection_run_at_the_same_time(connections: Connections) -> None:
    async with connections.connect() as memory:
        stored = await asyncio.gather(*(memory.store(f"The lamp has number {number}") for number in range(8)))
        assert len({each.id for each in stored}) == 8


async def test_another_being_sees_nothing_of_it(connections: Connections) -> None:
    async with connections.connect("ada") as ada, connections.connect("bert") as bert:
        stored = await ada.store("The lamp is broken")
        assert (await bert.recall("The lamp is broken")).memories == ()
        assert (await bert.memories([stored.id])).missing == (stored.id,)
        assert (await bert.forget([stored.id])).erased == ()
        assert (await ada.memories([stored.id])).missing == ()


async def test_a_refused_call_raises_the_kind_of_error_with_its_values(connections: Connections) -> None:
    async with connections.connect() as memory:
        with pytest.raises(madeleine.InvalidInput, match="text"):
            await memory.store("")
        with pytest.raises(madeleine.InvalidInput, match="ids or cluster_id"):
            await memory.memories()
        await memory.store("The lamp is broken", key="lamp")
        with pytest.raises(madeleine.KeyConflict, match="was used before") as conflict:
            await memory.store("The chair is broken", key="lamp")
        assert conflict.value.key == "lamp"
        assert (await memory.recall("The lamp is broken")).count == 1


async def test_an_error_in_the_program_closes_the_connection_and_passes(connections: Connections) -> None:
    """Not in a group of errors."""

    async def fail() -> None:
        async with connections.connect() as memory:
            await memory.store("The lamp is broken")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with connections.connect() as memory:
        assert (await memory.recall("The lamp is broken")).count == 1


async def test_a_call_that_is_cancelled_leaves_the_connection_usable(connections: Connections) -> None:
    async with connections.connect() as memory:
        call = asyncio.create_task(memory.store("The chair is broken"))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await memory.store("The lamp is broken")).status == "stored"
