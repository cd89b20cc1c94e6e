"""Finding memories without a model: by keywords (spec P11, H2 to H4), by the subject of a message (spec H1 to H4), and
whole ones by id or cluster (spec P10).

The subject of a message is its tags. The best of all texts that hold a tag, or a theme related to one, form a pool;
the pool is sorted by time and trimmed. Rare tags weigh more: otherwise the newest texts with the commonest word would
be the only ones returned.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource, Stemmer, TagSearchQuery
from madeleine.memory.model import (
    ClusterId,
    Emotion,
    EmotionSummary,
    EmotionVector,
    Memory,
    MemoryId,
    MemoryStatus,
    MemoryValuesBeforeChange,
    Scope,
)
from madeleine.memory.recall.matching_versions import hit_holds_terms, with_matching_versions
from madeleine.memory.recall.ports import (
    BrowseLedger,
    ClusterWithMemoryCounts,
    KeywordSearchLedger,
    MemoryReactivation,
    MessageTagSearchLedger,
    ReactivationRecorder,
)
from madeleine.memory.rules.dynamics.windows import id_of_version_in_window
from madeleine.memory.rules.feelings import mood_of_feelings
from madeleine.memory.rules.searching import (
    deduplicated_hits,
    extract_most_specific_search_tags,
    hit_with_snippet,
    items_best_matching_tags,
    keep_hits_near_best_tag_match,
    make_first_match_position_finder,
    make_first_tag_position_finder,
    related_themes,
    sort_hits_newest_first,
)
from madeleine.memory.rules.spelling import (
    IsDictionaryWord,
    StemWordInLanguage,
    no_dictionary_word,
    spelling_corrections_from_texts,
    word_as_its_own_stem,
)
from madeleine.memory.rules.storing.supersession import says_much_of_same
from madeleine.memory.text.normalization import fold_text

_QUERY_TERM = re.compile(r'"([^"]+)"|(\S+)')


MAX_TEXTS_READ_FOR_SPELLING = 20_000
"""Newest texts of each source whose words count as known when a word is respelled: 0.2 s."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """`respelled`: words of the query that no text holds, and those that were searched in their place. `omitted`: of a
    search by the subject of a message, the number of texts with any of its words beyond the limit (ruling 19)."""

    hits: tuple[SearchHit, ...]
    next_cursor: str = ""
    respelled: Mapping[str, str] = field(default_factory=dict)
    omitted: int = 0


async def find_spelling_corrections(
    ledger: KeywordSearchLedger,
    scope: Scope,
    words: Sequence[str],
    query: str = "",
    *,
    sources: Sequence[SearchSource],
    stem: StemWordInLanguage = word_as_its_own_stem,
    is_word: IsDictionaryWord = no_dictionary_word,
) -> Mapping[str, str]:
    """What words that no text of these sources holds were probably meant to be (`spelling_corrections_from_texts`)."""
    folded = {fold_text(word): word for word in words}
    texts = await ledger.recent_texts(scope, sources, most=MAX_TEXTS_READ_FOR_SPELLING)
    near = await asyncio.to_thread(spelling_corrections_from_texts, list(folded), texts, query, stem, is_word)
    return {folded[word]: other for word, other in near.items()}


@dataclass(frozen=True, eq=False)
class SearchStoredTexts:
    """The use case. Living memories that are found get +1 reactivation, dead ones +2. Other sources are not counted,
    nor is a list without words (ruling 18)."""

    ledger: KeywordSearchLedger
    activations: ReactivationRecorder
    _: KW_ONLY
    search_by_tags: SearchByTagsFromMessage
    now: Callable[[], datetime]
    stem: StemWordInLanguage = word_as_its_own_stem

    async def __call__(self, scope: Scope, query: KeywordQuery, *, cursor: str = "") -> SearchPage:
        """Newest first. What has the terms within words alone is found only where nothing has them at the beginning of
        words, and where nothing has them, words that no text holds are respelled (`spelling_corrections_from_texts`).
        Raises `InvalidInput` for a cursor that is not of this query."""
        position = decode_search_cursor(cursor, query) if cursor else query
        page_and_next, position = await self._page_of_word_beginnings_first(scope, position)
        respelled: Mapping[str, str] = {}
        if query.terms and not page_and_next and (respelled := await self._spelling_corrections(scope, query)):
            terms = tuple(respelled.get(term, term) for term in query.terms)
            page_and_next, position = await self._page_of_word_beginnings_first(scope, replace(position, terms=terms))
        hits = page_and_next[: query.limit]
        if query.terms and query.as_of is None:  # listing and looking back wake nothing (ruling 18)
            self._record_reactivations_of_hits(scope, hits)
        searched = replace(query, within_words=position.within_words)
        next_cursor = encode_search_cursor(hits[-1].position, searched) if len(page_and_next) > query.limit else ""
        hits = await with_matching_versions(self.ledger, scope, hits, position)
        return SearchPage(tuple(hits), next_cursor, respelled if hits else {})

    async def _page_of_word_beginnings_first(
        self, scope: Scope, query: KeywordQuery
    ) -> tuple[list[SearchHit], KeywordQuery]:
        """A page and one hit more, and the query that found it. A page behind another one is of the same kind."""
        found = await self._page_and_one_more_hit(scope, query)
        if not query.terms or query.after is not None or not found:
            return found, query
        begins = replace(query, within_words=False)
        if all(hit_holds_terms(hit, begins) for hit in found):  # then these are the first that begin a word, too
            return found, begins
        page = await self._page_and_one_more_hit(scope, begins)
        return (page, begins) if page else (found, query)

    async def _spelling_corrections(self, scope: Scope, query: KeywordQuery) -> Mapping[str, str]:
        return await find_spelling_corrections(self.ledger, scope, query.terms, sources=query.sources, stem=self.stem)

    async def search_by_tags_of_message(self, scope: Scope, message: str, query: KeywordQuery) -> SearchPage:
        """Search one page by the tags of a message (`SearchByTagsFromMessage`)."""
        page = await self.search_by_tags.search_by_tags_of_message(scope, message, query)
        self._record_reactivations_of_hits(scope, page.hits)
        return page

    async def _page_and_one_more_hit(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        """A page and one hit more, if there is one. Duplicates are left out, and the page is filled up from where it
        ended (spec H2, H4)."""
        find_match = make_first_match_position_finder(query.terms)
        hits: list[SearchHit] = []
        size = query.limit + 1
        while len(hits) < size:
            batch = await self.ledger.newest_matching_texts(scope, replace(query, limit=size))
            hits = deduplicated_hits([*hits, *(hit_with_snippet(hit, find_match) for hit in batch)])
            if len(batch) < size:
                break
            query = replace(query, after=batch[-1].position)
        return hits[:size]

    def _record_reactivations_of_hits(self, scope: Scope, hits: Iterable[SearchHit]) -> None:
        now = self.now()
        memories = [hit for hit in hits if hit.source == "memories" and hit.truth == "current"]
        self.activations.add_reactivations(
            scope, [reactivation_of_shown_memory(MemoryId(hit.id), hit.status, now) for hit in memories]
        )


def reactivation_of_shown_memory(memory_id: MemoryId, status: MemoryStatus | None, at: datetime) -> MemoryReactivation:
    """+1 for a living memory, +2 for a dead one (spec P10, P11)."""
    return MemoryReactivation(memory_id, 2 if status == "dead" else 1, at)


def split_search_terms(text: str) -> tuple[str, ...]:
    """Split a query at white space, `"a phrase"` as one term; casefolded and width-normalised, each once."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(dict.fromkeys(phrase or word for phrase, word in _QUERY_TERM.findall(folded)))


def _query_fingerprint(query: KeywordQuery) -> str:
    return hashlib.sha256(repr(replace(query, after=None, limit=0)).encode()).hexdigest()[:12]


def encode_search_cursor(position: tuple[int, str], query: KeywordQuery) -> str:
    return base64.urlsafe_b64encode(json.dumps([*position, _query_fingerprint(query)]).encode()).decode()


def decode_search_cursor(cursor: str, query: KeywordQuery) -> KeywordQuery:
    """The query for the page behind the cursor."""
    try:
        micros, id_, fingerprint = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        position = (int(micros), str(id_))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidInput("cursor is not one that search_memory returned; leave it out to start again.") from error
    for kind in (query, replace(query, within_words=False)):
        if fingerprint == _query_fingerprint(kind):
            return replace(kind, after=position)
    raise InvalidInput("cursor belongs to another search; repeat the arguments it came from, or leave it out.")


TAG_SEARCH_POOL_SIZE_PER_HIT = 4
"""Pool size as a multiple of the limit: of the pool, texts near the best one are sorted by time."""
MAX_MEMORIES_READ_FOR_COOCCURRENCE = 5_000
"""Newest memories whose themes are examined for co-occurrence."""
MAX_RELATED_THEMES_SEARCHED = 8
MAX_TAG_SEARCHED_TEXTS_PER_SOURCE = 50_000
"""Newest texts of each source that are searched. A context is built each turn, so its cost is bounded."""


@dataclass(frozen=True, eq=False)
class SearchByTagsFromMessage:
    """The use case. It counts no reactivation: a context, which is built each turn, is not a recall."""

    ledger: MessageTagSearchLedger
    stem: Stemmer

    async def __call__(
        self, scope: Scope, message: str, *, limit: int, include_chat: bool, include_diary: bool = True
    ) -> tuple[SearchHit, ...]:
        """Search living memories and, if wanted, the diary and conversations; newest first, at most `limit`. Chat
        messages identical to `message` are left out."""
        included: dict[SearchSource, bool] = {"memories": True, "diary": include_diary, "chat": include_chat}
        sources = tuple(source for source, include in included.items() if include)
        query = KeywordQuery(terms=(), sources=sources, include_dead=False, limit=limit)
        return (await self.search_by_tags_of_message(scope, message, query)).hits

    async def search_by_tags_of_message(self, scope: Scope, message: str, query: KeywordQuery) -> SearchPage:
        """Search within the filters and sources of `query`, at most `query.limit` hits; its terms and position are
        ignored. Empty for a message without tags."""
        tags = extract_most_specific_search_tags(message, self.stem)
        if not tags:
            return SearchPage(())
        themes = await self.ledger.themes_of_each_recent_memory_with_tag(
            scope, tags, recent=MAX_MEMORIES_READ_FOR_COOCCURRENCE
        )
        related = related_themes(themes, tags, most=MAX_RELATED_THEMES_SEARCHED)
        pool_size = TAG_SEARCH_POOL_SIZE_PER_HIT * query.limit + 1  # the message itself may be among them
        matches = await self.ledger.tag_matches_of_each_source(
            scope, TagSearchQuery(tags, related, replace(query, limit=pool_size), MAX_TAG_SEARCHED_TEXTS_PER_SOURCE)
        )
        best = items_best_matching_tags(matches, len(tags), pool_size)
        hits = {(hit.source, hit.id): hit for hit in await self.ledger.hits_with_ids(scope, [ref for ref, _ in best])}
        superseded = [MemoryId(hit.id) for hit in hits.values() if hit.truth == "superseded"]
        if superseded and query.as_of is None:
            current = await self._hits_of_shown_versions(scope, superseded, query)
            hits = {ref: hit for ref, hit in hits.items() if hit.truth != "superseded"} | current
        weighted = [(hits[ref], weight) for ref, weight in best if ref in hits]
        others = [(hit, weight) for hit, weight in weighted if not _is_message_itself(hit, message)]
        find_match = make_first_tag_position_finder(tags)
        pool = sort_hits_newest_first(keep_hits_near_best_tag_match(others, query.limit))
        shown = (hit_with_snippet(hit, find_match) for hit in pool)
        page = tuple(deduplicated_hits(shown)[: query.limit])
        left_out = len(best) - len({(hit.source, hit.id) for hit, _ in others})
        return SearchPage(page, omitted=sum(sum(one.counts.values()) for one in matches) - left_out - len(page))

    async def _hits_of_shown_versions(
        self, scope: Scope, superseded: Sequence[MemoryId], query: KeywordQuery
    ) -> dict[tuple[SearchSource, str], SearchHit]:
        """Hits of the current versions, or of those of the window, by those that they are shown for (ruling 14)."""
        versions = await self._shown_version_ids(scope, superseded, query)
        hits = await self.ledger.hits_with_ids(scope, [("memories", id_) for id_ in dict.fromkeys(versions.values())])
        shown = {hit.id: hit for hit in hits if query.include_dead or hit.status != "dead"}
        return {("memories", id_): shown[last] for id_, last in versions.items() if last in shown}

    async def _shown_version_ids(
        self, scope: Scope, superseded: Sequence[MemoryId], query: KeywordQuery
    ) -> dict[MemoryId, MemoryId]:
        since, until = query.since, query.until
        if not (since or until):
            return await self.ledger.current_version_id_by_memory_id(scope, superseded)
        chains = await self.ledger.all_versions_by_memory_id(scope, superseded)
        shown = ((id_, id_of_version_in_window(id_, chain, since, until)) for id_, chain in chains.items())
        return {id_: version for id_, version in shown if version is not None}


def _is_message_itself(hit: SearchHit, message: str) -> bool:
    """True for a chat hit in the very words of the message: most likely the message itself, already observed."""
    return hit.source == "chat" and fold_text(hit.text).split() == fold_text(message).split()


MAX_REACTIVATION_FLUSH_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class BrowsedMemories:
    """`missing`: ids under which this being has no memory. `revisions`: what the memories said before they were
    corrected, oldest first. `versions`: of each that has a past or a successor, the current one last."""

    memories: tuple[Memory, ...]
    revisions: tuple[MemoryValuesBeforeChange, ...] = ()
    versions: Mapping[MemoryId, Sequence[Memory]] = field(default_factory=dict)
    missing: tuple[MemoryId, ...] = ()
    next_cursor: str = ""


@dataclass(frozen=True, eq=False)
class BrowseMemories:
    """The use case. Each living memory that is shown gets +1 reactivation, each dead one +2."""

    ledger: BrowseLedger
    activations: ReactivationRecorder
    _: KW_ONLY
    now: Callable[[], datetime]

    async def by_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> BrowsedMemories:
        await self._flush_activations()
        memories = await self.ledger.memories_with_ids(scope, list(dict.fromkeys(ids)))
        existing = {memory.id for memory in memories}
        missing = tuple(id_ for id_ in dict.fromkeys(ids) if id_ not in existing)
        return await self._make_page_and_record_reactivations(scope, memories, missing=missing)

    async def current_memories_that_said_the_same(self, scope: Scope, superseded: Memory) -> list[Memory]:
        """What a superseded memory was proposed to supersede, and what was stored beside it and says much of the same:
        who has retired the one has not decided about these."""
        linked = await self.ledger.possible_newer_version_pairs(scope, [superseded.id])
        ids = (superseded.may_supersede, superseded.resembles, *(one.newer for one in linked if not one.is_proposed))
        found = await self.ledger.memories_with_ids(scope, list(dict.fromkeys(id_ for id_ in ids if id_)))
        return [
            one
            for one in found
            if one.truth == "current" and (one.id == superseded.may_supersede or says_much_of_same(one, superseded))
        ]

    async def memories_of_cluster(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, cursor: str = ""
    ) -> BrowsedMemories:
        """Newest first. Raises `InvalidInput` for a cluster that does not exist."""
        await self._flush_activations()
        memories = await self.ledger.memories_of_cluster(scope, cluster_id, limit=limit + 1, after=cursor or None)
        if memories is None:
            raise InvalidInput(
                f"There is no cluster {cluster_id!r}. Call recall_memory without arguments for the list of clusters."
            )
        next_cursor = memories[limit - 1].id if len(memories) > limit else ""
        return await self._make_page_and_record_reactivations(scope, memories[:limit], next_cursor=next_cursor)

    async def clusters_with_moods(self, scope: Scope) -> list[tuple[ClusterWithMemoryCounts, EmotionSummary | None]]:
        """Each with how its active memories felt; None if no feeling is known."""
        feelings: dict[ClusterId, list[tuple[Sequence[Emotion], EmotionVector | None]]] = defaultdict(list)
        for cluster_id, emotions, told in await self.ledger.feelings_of_clustered_memories(scope):
            feelings[cluster_id].append((emotions, told))
        clusters = await self.ledger.clusters_with_memory_counts(scope)
        return [(cluster, mood_of_feelings(feelings[cluster.id])) for cluster in clusters]

    async def _make_page_and_record_reactivations(
        self, scope: Scope, memories: Sequence[Memory], *, missing: tuple[MemoryId, ...] = (), next_cursor: str = ""
    ) -> BrowsedMemories:
        now = self.now()
        self.activations.add_reactivations(
            scope, [reactivation_of_shown_memory(memory.id, memory.status, now) for memory in memories]
        )
        revisions = await self.ledger.revision_history(scope, [memory.id for memory in memories])
        in_chain = [memory.id for memory in memories if memory.superseded_by or memory.valid_from]
        versions = await self.ledger.all_versions_by_memory_id(scope, in_chain) if in_chain else {}
        return BrowsedMemories(tuple(memories), tuple(revisions), versions, missing, next_cursor)

    async def _flush_activations(self) -> None:
        """Count recalls that were just made; bounded, so that no read waits for a busy writer."""
        flush = asyncio.ensure_future(self.activations.flush())
        # A failure is not the reader's: the counts are kept, and their writer tries again and logs it.
        flush.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({flush}, timeout=MAX_REACTIVATION_FLUSH_SECONDS)
