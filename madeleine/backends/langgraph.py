"""LangGraph's long-term store over a being's memory. Needs the extra `langgraph`.

    async with madeleine.connect(being="ada") as memory:
        graph = builder.compile(store=MadeleineStore(memory))

Every item is a memory: its text is the item's text, or the item as JSON; its place is the item's namespace and key. So
it is recalled by meaning, shown and forgotten like any other. Secrets are taken out before anything is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

if TYPE_CHECKING:
    from madeleine.client import Memory
    from madeleine.models import MemoryRecord

Namespace = tuple[str, ...]
ITEM_VALUE_TEXT_KEY = "text"
"""An item with this field alone is stored as that text."""
ROOT_NAMESPACE: Namespace = ()
MAX_PAGE, MAX_RECALLED = 50, 50
MAX_NAMESPACE_DEPTH = 15
"""Of a namespace: each of its beginnings is a theme, and a memory has at most twenty."""


class MadeleineStore(BaseStore):
    """`memory`: an open connection, used in the event loop in which the store was made. An item that is put again is
    corrected, and keeps its history. A search without a query lists the latest first."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Raises `RuntimeError` in the event loop's own thread, which would wait for itself."""
        try:
            is_own_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own_loop = False
        if is_own_loop:
            raise RuntimeError(
                "Await the asynchronous methods here, as aput and asearch: this thread runs the event loop."
            )
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Raises `MadeleineError`."""
        return [await self._carry_out(op) for op in ops]

    async def _carry_out(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(op.namespace, op.key)
            case PutOp():
                await self._put(op)
                return None
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._namespaces(op)
        raise TypeError(f"{type(op).__name__} is no operation of a store.")

    async def _get(self, namespace: Namespace, key: str) -> Item | None:
        record = await self._record(namespace, key)
        return search_item_from_record(record) if record else None

    async def _record(self, namespace: Namespace, key: str) -> MemoryRecord | None:
        found = await self._listed(theme_for_item_key(namespace, key))
        return next(
            (record for record in found if langgraph_namespace_and_key_of_memory(record) == (namespace, key)), None
        )

    async def _put(self, op: PutOp) -> None:
        namespace, key = tuple(op.namespace), op.key
        async with self._writing:
            known = await self._record(namespace, key)
            if op.value is None:
                if known is not None:
                    await self._memory.forget([known.id])
                return
            text = memory_text_from_item_value(op.value)
            if known is not None:
                if known.text != text:
                    await self._memory.update(known.id, text=text)
                return
            if len(namespace) > MAX_NAMESPACE_DEPTH:
                raise ValueError(f"A namespace has at most {MAX_NAMESPACE_DEPTH} labels here.")
            place = json.dumps({"namespace": namespace, "key": key}, ensure_ascii=False)
            themes = [
                theme_for_item_key(namespace, key),
                *(theme_of_namespace(namespace[:end]) for end in range(len(namespace) + 1)),
            ]
            await self._memory.store(text, setting=place, themes=themes, category="semantic", distinct=True)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        wanted = op.offset + op.limit
        if op.query:
            most = MAX_RECALLED if op.filter else min(wanted, MAX_RECALLED)
            result = await self._memory.recall(
                op.query, themes=[theme_of_namespace(prefix)], limit=most, token_budget=100_000
            )
            found: Sequence[MemoryRecord] = result.memories
        else:
            found = await self._listed(theme_of_namespace(prefix), most=None if op.filter else wanted)
        items = (search_item_from_record(record) for record in found if langgraph_namespace_and_key_of_memory(record))
        matching = [
            item
            for item in items
            if item.namespace[: len(prefix)] == prefix and value_matches_filter(item.value, op.filter)
        ]
        return matching[op.offset : wanted]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        places = (
            langgraph_namespace_and_key_of_memory(record)
            for record in await self._listed(theme_of_namespace(ROOT_NAMESPACE))
        )
        every = (place[0] for place in places if place)
        kept = {
            one[: op.max_depth]
            for one in every
            if all(does_namespace_match_condition(one, rule) for rule in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]

    async def _listed(self, theme: str, *, most: int | None = None) -> list[MemoryRecord]:
        """All, or the latest `most`, with all fields, the latest first."""
        records: list[MemoryRecord] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await self._memory.search(
                themes=[theme], sources=["memories"], details=False, limit=MAX_PAGE, **cursor
            )
            if page.hits:
                records += (await self._memory.memories([hit.id for hit in page.hits])).memories
            if not page.next_cursor or (most is not None and len(records) >= most):
                return records
            cursor = {"cursor": page.next_cursor}


def theme_of_namespace(namespace: Namespace) -> str:
    """The theme of all items below a namespace. Themes are compared without case: a digest keeps names apart."""
    return f"langgraph {hashlib.sha256(json.dumps(namespace).encode()).hexdigest()[:24]}"


def theme_for_item_key(namespace: Namespace, key: str) -> str:
    return theme_of_namespace((*namespace, "", key))  # no label of a namespace is empty


def langgraph_namespace_and_key_of_memory(record: MemoryRecord) -> tuple[Namespace, str] | None:
    """Namespace and key; None for a memory that is no item."""
    try:
        place = json.loads(record.setting)
        return tuple(place["namespace"]), str(place["key"])
    except (ValueError, KeyError, TypeError):
        return None


def memory_text_from_item_value(value: Mapping[str, Any]) -> str:
    """What `langgraph_item_value_from_text` reads back."""
    text = value.get(ITEM_VALUE_TEXT_KEY) if len(value) == 1 else None
    if isinstance(text, str) and text and text == text.strip() and langgraph_item_value_from_text(text) == value:
        return text
    return json.dumps(value, ensure_ascii=False)


def langgraph_item_value_from_text(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {ITEM_VALUE_TEXT_KEY: text}


def search_item_from_record(record: MemoryRecord) -> SearchItem:
    place = langgraph_namespace_and_key_of_memory(record)
    assert place is not None
    created = record.provenance.stored_at or datetime.now(UTC)
    changes = [revision.until for revision in record.history if revision.until]
    return SearchItem(
        namespace=place[0],
        key=place[1],
        value=langgraph_item_value_from_text(record.text),
        created_at=created,
        updated_at=max([created, *changes]),
        score=record.score,
    )


_COMPARISONS: Mapping[str, Any] = {
    "$eq": lambda have, want: have == want,
    "$ne": lambda have, want: have != want,
    "$gt": lambda have, want: have is not None and have > want,
    "$gte": lambda have, want: have is not None and have >= want,
    "$lt": lambda have, want: have is not None and have < want,
    "$lte": lambda have, want: have is not None and have <= want,
}


def value_matches_filter(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Raises `ValueError` for an operator that the store's interface does not have."""
    return all(_is_as_wanted(value.get(name), want) for name, want in (wanted or {}).items())


def _is_as_wanted(have: Any, want: Any) -> bool:
    if not (isinstance(want, dict) and any(str(name).startswith("$") for name in want)):
        return bool(have == want)
    if unknown := want.keys() - _COMPARISONS.keys():
        raise ValueError(f"Unknown operator {min(unknown)!r} in a filter.")
    return all(_COMPARISONS[name](have, other) for name, other in want.items())


def does_namespace_match_condition(namespace: Namespace, rule: MatchCondition) -> bool:
    path = cast("Namespace", tuple(rule.path))
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if rule.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(want in ("*", have) for have, want in zip(part, path, strict=True))
