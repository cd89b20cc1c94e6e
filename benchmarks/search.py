"""Speed of `search_memory`'s use cases over the ledger alone: `python -m benchmarks.search [--size 100000]`.

The store holds made-up memories and as many messages, of words drawn from 20,000 by Zipf's law, and ten years of diary.
For each kind of query the shortest time of a page is printed, and the processor time of all threads, which is more
telling on a busy machine. Tag searches have eight words, unless the name says one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table

from madeleine.inference.stems import stem_english_word
from madeleine.memory.chat import ConversationMessage, MessageId
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.model import BeingId, EmbeddingModelName, Memory, MemoryId, Provenance, RunId, Scene, Scope
from madeleine.memory.patrol_records import DiaryEntry, PatrolChanges
from madeleine.memory.recall.search import SearchByTagsFromMessage, SearchStoredTexts, split_search_terms
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger

SCOPE = Scope(BeingId("benchmark"), count_activations=False)
END = datetime(2026, 3, 1, tzinfo=UTC)
WORDS, LENGTH, BATCH, DAYS, ROUNDS = 20_000, 30, 1_000, 3_650, 5
COMMON, RARE = 40, 9_000
"""Ranks of words: one text in fourteen contains the 40th, one in three thousand the 9,000th."""


class Texts:
    def __init__(self) -> None:
        self._rng = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = (self._rng.choices(letters, k=self._rng.randint(4, 9)) for _ in range(WORDS))
        self.words = ["".join(word) for word in words]
        self._weights = list(accumulate(1 / (rank + 1) for rank in range(WORDS)))

    def __call__(self, length: int = LENGTH) -> str:
        return " ".join(self._rng.choices(self.words, cum_weights=self._weights, k=length))

    def ids(self) -> Iterator[str]:
        while True:
            yield str(UUID(int=self._rng.getrandbits(128)))


async def fill(ledger: LedgerRepositories, texts: Texts, size: int) -> None:
    ids = texts.ids()
    for start in range(0, size, BATCH):
        moments = [END - timedelta(minutes=size - n) for n in range(start, min(size, start + BATCH))]
        new = (
            Memory(
                id=MemoryId(next(ids)), being_id=SCOPE.being_id, scene=Scene(action=texts()), created_at=at,
                happened_at=at, provenance=Provenance(tool="store"), themes=tuple(texts(2).split()),
            )
            for at in moments
        )  # fmt: skip
        await ledger.memories.commit_store_batch(
            SCOPE, StoreBatch(new=tuple(new), model=EmbeddingModelName("none"), vectors={})
        )
        messages = [
            ConversationMessage(
                id=MessageId(next(ids)), session_id=f"session {start}", position=0, role="user", speaker="Ann",
                text=texts(), at=at, stored_at=at,
            )
            for at in moments
        ]  # fmt: skip
        await ledger.conversations.append_messages(SCOPE, f"session {start}", messages, keys=[None] * len(messages))
    async with ledger.patrols.patrol_transaction(SCOPE) as patrol:
        for day in range(DAYS):
            date = (END - timedelta(days=day)).date().isoformat()
            entry = DiaryEntry(date=date, text=texts(5 * LENGTH), sources=(), written_at=END)
            await patrol.apply_changes(PatrolChanges(diary=entry), run=RunId("run"), step="diary")


async def measure(ledger: LedgerRepositories, texts: Texts, show: Callable[[str, float, float, int], None]) -> None:
    by_message = SearchByTagsFromMessage(ledger.search, stem_english_word)
    search = SearchStoredTexts(ledger.search, ledger.activations, search_by_tags=by_message, now=lambda: END)
    words = texts.words

    async def timed(name: str, call: Callable[[], Awaitable[Any]]) -> None:
        elapsed, computed, hits = [], [], 0
        for _ in range(ROUNDS):
            start, began = time.perf_counter(), time.process_time()
            answer = await call()
            elapsed.append((time.perf_counter() - start) * 1_000)
            computed.append((time.process_time() - began) * 1_000)
            hits = len(answer if isinstance(answer, tuple) else answer.hits)
        show(name, min(elapsed), min(computed), hits)

    queries = {
        "a common word": words[COMMON],
        "a rare word": words[RARE],
        "an absent word": "qqqqqqqqqqq",
        "four rare words": " ".join(words[RARE : RARE + 4]),
    }
    for name, text in queries.items():
        query = KeywordQuery(terms=split_search_terms(text))
        await timed(f"{name}, any", lambda query=query: search(SCOPE, query))  # type: ignore[misc]
        all_words = replace(query, mode="and")
        await timed(f"{name}, all", lambda query=all_words: search(SCOPE, query))  # type: ignore[misc]
    messages = {
        "tags, all rare": words[RARE : RARE + 8],
        "tags, half of them common": words[COMMON : COMMON + 4] + words[RARE : RARE + 4],
        "tags, one": words[RARE : RARE + 1],
    }
    for name, words_of_message in messages.items():
        for chat in (False, True):

            async def call(message: str = " ".join(words_of_message), chat: bool = chat) -> Any:
                return await by_message(SCOPE, message, limit=5, include_chat=chat)

            await timed(f"{name}{', with chat' if chat else ''}", call)


async def main(size: int) -> None:
    texts = Texts()
    table = Table("query", "ms", "processor ms", "hits", title=f"{size:,} memories, {size:,} messages")

    def show(name: str, elapsed: float, computed: float, hits: int) -> None:
        table.add_row(name, f"{elapsed:.1f}", f"{computed:.1f}", str(hits))

    with tempfile.TemporaryDirectory() as directory:
        async with open_ledger(Path(directory) / "memory.db") as ledger:
            await fill(ledger, texts, size)
            await measure(ledger, texts, show)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    asyncio.run(main(parser.parse_args().size))
