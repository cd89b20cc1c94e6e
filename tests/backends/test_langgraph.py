"""LangGraph's store over a being's memory, by the framework's own interface and against its own store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Item
from langgraph.store.memory import InMemoryStore

import madeleine
from madeleine.backends.langgraph import MadeleineStore, langgraph_item_value_from_text, memory_text_from_item_value


@pytest.fixture
async def memory(folder: Path) -> AsyncIterator[madeleine.Memory]:
    async with madeleine.connect(being="ada", data_dir=folder, role="senior") as memory:
        yield memory


def shown(items: list[Any]) -> list[tuple[tuple[str, ...], str, dict[str, Any]]]:
    return sorted((item.namespace, item.key, item.value) for item in items)


async def use(store: BaseStore) -> list[Any]:
    """What a program sees of a store that begins empty."""
    seen: list[Any] = [await store.aget(("users", "ada"), "tea")]
    await store.aput(("users", "ada"), "tea", {"text": "Ada prefers green tea"})
    await store.aput(("users", "ada"), "job", {"title": "Engineer", "years": 7, "tools": ["git"]})
    await store.aput(("users", "Ada"), "tea", {"text": "Another Ada, by case"})
    await store.aput(("docs",), "a/b", {"text": '{"looks": "like JSON"}'})
    for namespace, key in (
        (("users", "ada"), "tea"),
        (("users", "Ada"), "tea"),
        (("docs",), "a/b"),
    ):
        item = await store.aget(namespace, key)
        seen.append(item and shown([item]))
    seen.append(shown(await store.asearch(("users",))))
    seen.append(shown(await store.asearch(("users", "ada"), filter={"title": {"$eq": "Engineer"}})))
    seen.append(shown(await store.asearch(("users", "ada"), filter={"title": "Baker"})))
    seen.append(shown(await store.asearch((), limit=2, offset=9)))
    seen.append(sorted(await store.alist_namespaces()))
    seen.append(await store.alist_namespaces(prefix=("users", "*"), max_depth=1))
    seen.append(await store.alist_namespaces(suffix=("Ada",)))
    await store.aput(("users", "ada"), "tea", {"text": "Ada prefers coffee now"})
    await store.adelete(("docs",), "a/b")
    await store.adelete(("docs",), "never")
    seen.append(shown(await store.asearch(())))
    return seen


async def test_it_does_what_the_frameworks_own_store_does(memory: madeleine.Memory) -> None:
    assert await use(MadeleineStore(memory)) == await use(InMemoryStore())


@pytest.mark.slow
async def test_items_are_found_by_meaning_and_keep_their_history(memory: madeleine.Memory) -> None:
    store = MadeleineStore(memory)
    await store.aput(("users", "ada"), "tea", {"text": "Ada prefers green tea"})
    await store.aput(("users", "bo"), "car", {"text": "Bo drives a lorry"})
    [best, *_] = await store.asearch(("users",), query="Which tea does Ada prefer?")
    assert (best.key, best.score is not None) == ("tea", True)
    assert [item.key for item in await store.asearch(("users", "bo"), query="green tea")] == ["car"]
    await store.aput(("users", "ada"), "tea", {"text": "Ada prefers coffee"})
    [item] = await store.asearch(("users", "ada"))
    assert item.updated_at >= item.created_at  # both to the second
    [record] = (await memory.memories([(await memory.search("coffee")).hits[0].id])).memories
    assert record.history[0].text == "Ada prefers green tea"


async def test_items_of_another_being_are_nowhere(memory: madeleine.Memory, folder: Path) -> None:
    await MadeleineStore(memory).aput(("users",), "tea", {"text": "Ada prefers green tea"})
    async with madeleine.connect(being="bo", data_dir=folder) as other:
        store = MadeleineStore(other)
        assert await store.asearch(()) == []
        assert await store.aget(("users",), "tea") is None
        assert await store.alist_namespaces() == []


@pytest.mark.slow
async def test_the_synchronous_methods_work_in_another_thread_and_refuse_their_own(memory: madeleine.Memory) -> None:
    store = MadeleineStore(memory)

    def in_thread() -> Item | None:
        store.put(("users",), "tea", {"text": "Ada prefers green tea"})
        return store.get(("users",), "tea")

    item = await asyncio.to_thread(in_thread)
    assert item is not None
    assert item.value == {"text": "Ada prefers green tea"}
    with pytest.raises(RuntimeError, match="aput"):
        store.get(("users",), "tea")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["text", "a", ""]), json_values, max_size=3))
def test_an_item_reads_back_as_it_was(value: dict[str, Any]) -> None:
    assert langgraph_item_value_from_text(memory_text_from_item_value(value)) == value
