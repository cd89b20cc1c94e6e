"""What was let go of comes back: one search by its words, and one patrol."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.dynamics.revival import MOST_WORDS, longest_words
from benchmarks.life.living import NOBODY, SCOPE, LivedStore
from benchmarks.life.measures import all_memories
from madeleine.inference.stems import stem_english_word
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.recall.search import SearchByTagsFromMessage, SearchStoredTexts, split_search_terms
from madeleine.memory.text.normalization import fold_text

SAMPLE = 200
SEED = 1


async def measure_coming_back(lived: LivedStore) -> dict[str, Any]:
    """Of a sample of the dead ones that nothing has absorbed: those that a search brings, by their longest words, or by
    a text of few words as a phrase, and those of them that are active after the patrol of the next day."""
    dead = [one for one in (await all_memories(lived)).values() if one.status == "dead" and not one.absorbed_into]
    sample = random.Random(SEED).sample(sorted(dead, key=lambda one: one.id), min(SAMPLE, len(dead)))
    if not sample:
        return {}
    ledger = lived.memory.ledger
    search = SearchStoredTexts(
        ledger.search,
        ledger.activations,
        search_by_tags=SearchByTagsFromMessage(ledger.search, stem_english_word),
        now=lived.now,
    )
    hit = set()
    for memory in sample:
        page = await search(
            SCOPE, KeywordQuery(terms=_search_terms(memory.scene.action), mode="and", include_dead=True)
        )
        hit |= {memory.id} & {found.id for found in page.hits}
    await lived.run_night(len(lived.record.nights), NOBODY)
    now = await ledger.memories.memories_with_ids(SCOPE, [memory.id for memory in sample])
    back = sum(memory.id in hit and memory.status == "active" and not memory.compressed for memory in now)
    return {
        "let go of": len(sample),
        "found by one search %": round(100 * len(hit) / len(sample), 1),
        "of these back after a patrol %": round(100 * back / max(1, len(hit)), 1),
    }


def _search_terms(text: str) -> tuple[str, ...]:
    """Its longest words; a text that has not enough of them is remembered as it was said."""
    telling = longest_words(text)
    return split_search_terms(" ".join(telling)) if len(telling) == MOST_WORDS else (fold_text(text),)
