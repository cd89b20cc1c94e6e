"""How a candidate query becomes two batches of engine queries, and their hits a candidate pool.

Both adapters inherit these queries, so they rank alike; an adapter only runs a `IndexPointQuery` on its engine.

The first batch looks up the words, while the model may still be at work on the vector. The second looks up the vector's
nearest neighbours, and the cosines of the points that the words have found. The two are fused here, by the engine's own
formula.

The engine returns a sum over terms; `CandidatePool` needs its parts. The weights are in the candidates' sparse vectors.
BM25's score of a single term in a document is idf × weight, so a query for that term alone, with the best document's
vector, gives the idf.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import AwaitQueryVector, CandidatePool, CandidateQuery
from madeleine.memory.model import LIVING_STATUSES, BeingId, Category, MemoryId, MemoryStatus, Scope, Vector
from madeleine.memory.text.content_words import content_words, is_id_or_address_word
from madeleine.memory.text.normalization import fold_text
from madeleine.memory.text.scripts import HAN_RUN_PATTERN, UNSPACED_SCRIPT_CHAR_PATTERN
from madeleine.memory.text.terms import LESSON_MARK_TERM, question_words_by_lesson_or_emotion
from madeleine.storage.qdrant import bm25, schema
from madeleine.storage.qdrant.point_contents import IndexPointContent, matrix_of_stored_bm25_weights
from madeleine.storage.qdrant.schema import BM25_VECTOR_NAME, DENSE_VECTOR_NAME, RRF_CHANNEL_WEIGHTS, RRF_RANK_CONSTANT

_NEAREST_HNSW_EF = 128
MAX_COMMON_TERM_IDF = 0.7
"""Of a term that half of the memories hold."""
MIN_HAN_SIGNS_OF_TWO_WORDS = 4

IdfByTerm = dict[int, float | None]
"""IDF of terms over a being's memories; None for a term that no memory has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexPointFilter:
    """Conditions that all hold; an empty tuple and None are no condition. `vector_name`: of a vector that the
    point has."""

    being: BeingId | None = None
    project: str = ""
    """With `being`: its memories of this project and of none."""
    statuses: tuple[MemoryStatus, ...] = ()
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    """The point has each of these."""
    since: datetime | None = None
    until: datetime | None = None
    include_compressed: bool = False
    point_ids: Collection[UUID] | None = None
    vector_name: str | None = None
    as_of_seconds: int | None = None
    """Known by the end of this second, or is a version of a chain."""

    def required_field_ranges(self) -> Iterator[tuple[str, dict[str, float]]]:
        """(payload field, bounds) of a point whose dates overlap with the time asked for."""
        if self.since is not None:
            yield schema.PERIOD_END_SECONDS_FIELD, {"gte": float(math.floor(self.since.timestamp()))}
        if self.until is not None:
            yield schema.PERIOD_START_SECONDS_FIELD, {"lte": float(math.floor(self.until.timestamp()))}

    def required_field_values(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """(payload field, values of which the point has one)."""
        living = self.being is not None and set(self.statuses) == set(LIVING_STATUSES) and not self.include_compressed
        if self.being is not None:
            yield schema.BEING_IF_RECALLABLE_FIELD if living else schema.BEING_FIELD, self._being_partition_names
        if self.statuses and not living:
            yield schema.STATUS_FIELD, self.statuses
        if self.categories:
            yield schema.CATEGORY_FIELD, self.categories
        for theme in self.themes:
            yield schema.THEMES_FIELD, (fold_text(theme),)

    @property
    def _being_partition_names(self) -> tuple[str, ...]:
        being = self.being or BeingId("")
        return (being, schema.being_partition_name(being, self.project)) if self.project else (being,)

    def excluded_field_ranges(self) -> Iterator[tuple[str, dict[str, int]]]:
        """(payload field, bounds): a point whose value is within them is left out; one without a value is not."""
        if self.as_of_seconds is not None:
            yield schema.TRUE_FROM_SECONDS_FIELD, {"gt": self.as_of_seconds}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexPointQuery:
    """A query by `vector`; without one by `terms` of weight 1 each."""

    where: IndexPointFilter
    limit: int
    vector: Vector | None = None
    terms: Sequence[int] = ()
    idf_corpus: IndexPointFilter | None = None
    """The points over which IDF is taken."""
    exact: bool = False
    ef: int | None = None
    with_content: bool = False
    """Features and stored weights of terms come with each hit."""
    known_keys: Collection[int] = ()
    """Keys of points whose content another query brings."""

    def query_vector_and_name(self, sparse_vector: Callable[..., Any]) -> tuple[Any, str]:
        """(what the hits are near to, name of the vector that is compared). `sparse_vector`: the engine's class."""
        if self.vector is not None:
            return self.vector.tolist(), DENSE_VECTOR_NAME
        return sparse_vector(indices=list(self.terms), values=[1.0] * len(self.terms)), BM25_VECTOR_NAME


class _QueryTermIds(NamedTuple):
    query_terms: Sequence[int]
    all_terms: Sequence[int]
    """These, and those of the query's content words, which may be cut otherwise."""


class IndexPointHit(NamedTuple):
    key: int
    """The point's id; a UUID's own hash and comparison are Python code."""
    point_id: UUID
    score: float
    content: IndexPointContent | None = None

    @property
    def memory_id(self) -> MemoryId:
        return self.content.id if self.content else MemoryId(str(self.point_id))


class HybridIndex(ABC):
    """The queries of `memory.index.Index`, over an engine that runs batches of point queries."""

    _HOLDS_VECTORS_OF_HITS: ClassVar[bool] = False
    """Whether `_cosines_of_cached_points` knows nearly every hit that came with its content."""

    @abstractmethod
    async def _run_queries(self, queries: Sequence[IndexPointQuery]) -> list[list[IndexPointHit]]:
        """The hits of each query, best first. Raises `IndexUnavailable`."""

    @abstractmethod
    async def _count_memories_with_words(self, scope: Scope) -> int:
        """Memories of the being that have words, as of the last `_cached_idf_by_term`."""

    @abstractmethod
    def _cached_idf_by_term(self, scope: Scope) -> IdfByTerm:
        """IDFs that may be reused; those that are looked up are added."""

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[tuple[MemoryId, float]]:
        where = IndexPointFilter(being=scope.being_id, project=scope.project, statuses=tuple(statuses))
        [hits] = await self._run_queries(
            [IndexPointQuery(where=where, limit=limit, vector=vector, ef=_NEAREST_HNSW_EF)]
        )
        return [(hit.memory_id, hit.score) for hit in hits]

    async def living_ids_sharing_most_words(
        self, scope: Scope, words: str, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[MemoryId]:
        if not (terms := bm25.query_term_ids(words)):
            return []
        mine = IndexPointFilter(being=scope.being_id, project=scope.project)
        query = IndexPointQuery(
            where=replace(mine, statuses=tuple(statuses)), limit=limit, terms=terms, idf_corpus=mine
        )
        [hits] = await self._run_queries([query])
        return [hit.memory_id for hit in hits]

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        """The greatest IDF of each word's terms; 0 for a word without terms."""
        terms = [bm25.query_term_ids(word) for word in words]
        known = self._cached_idf_by_term(scope)
        await self._run_queries_and_cache_idf(known, scope, [term for of_word in terms for term in of_word])
        return [max(await self._idf_of_terms(known, scope, of_word), default=0.0) for of_word in terms]

    async def candidates(self, scope: Scope, query: CandidateQuery, vector: AwaitQueryVector) -> CandidatePool:
        terms = bm25.query_term_ids(query.words)
        numbers = bm25.number_and_day_term_ids(query.words)
        words = {word: ids for word in content_words(query.words) if (ids := bm25.query_term_ids(word))}
        if days := numbers.difference(term for ids in words.values() for term in ids):  # 26 May is one term, not a 26
            words |= {word: [*days] for word, ids in words.items() if word.isdigit() and not set(ids) & set(terms)}
        asking = question_words_by_lesson_or_emotion(query.words)
        marks = {mark: bm25.query_term_ids(mark) for mark in asking}
        mark_terms = [term for of_mark in marks.values() for term in of_mark]
        terms = [*terms, *mark_terms]
        asked = list(dict.fromkeys((*terms, *(term for ids in words.values() for term in ids))))
        known = self._cached_idf_by_term(scope)
        hits, cosines = await self._search_by_words_and_vector(scope, query, vector, _QueryTermIds(terms, asked), known)
        absent = _idf_of_absent_term(await self._count_memories_with_words(scope))
        words = {
            piece: _rare_terms_of_word(piece, of_piece, known, absent)
            for word, ids in words.items()
            for piece, of_piece in _split_han_word_by_known_terms(word, ids, known)
        }
        for mark, of_mark in marks.items():
            if any(known[term] is not None for term in of_mark):
                named = [word for word in words if fold_text(word) in asking[mark]]
                if not named and (mark == LESSON_MARK_TERM or UNSPACED_SCRIPT_CHAR_PATTERN.search(asking[mark][0])):
                    named = [asking[mark][0]]  # too common a word to count, or part of one
                words |= {word: [*words.get(word, ()), *of_mark] for word in named}
        # A bridge joins the end of one word to the beginning of the next: that no memory holds it says nothing about
        # the words, and must not make the query look like one about something else.
        bridges = bm25.term_ids_of_half_hiragana_bigrams(query.words)
        optional = {*bridges, *mark_terms}
        counted = [at for at, term in enumerate(terms) if term not in optional or known[term] is not None]
        counted_terms = [terms[at] for at in counted]
        contents = [hit.content for hit in hits if hit.content]
        all_weights = matrix_of_stored_bm25_weights(contents, asked)
        twice = frozenset(bm25.query_term_ids(query.twice))
        idf = np.asarray(await self._idf_of_terms(known, scope, counted_terms), np.float32)
        return CandidatePool(
            ids=tuple(content.id for content in contents),
            features=tuple(content.features for content in contents),
            cosine=np.asarray([cosines.get(hit.key, 0.0) for hit in hits], np.float32),
            weights=all_weights[:, counted],
            idf=idf * np.asarray([1 + (term in twice) for term in counted_terms], np.float32),
            numbers=np.asarray([term in numbers for term in counted_terms], np.bool_),
            words=tuple(words),
            holds=_words_held_matrix(
                all_weights > 0, {word: [asked.index(term) for term in ids] for word, ids in words.items()}
            ),
            unknown=np.asarray(
                [2 * sum(known[term] is None for term in ids) > len(ids) for ids in words.values()], np.bool_
            ),
            rarity=await self._relative_idf_of_rarest_terms(known, scope, words.values()),
            memories=await self._count_memories_with_words(scope),
            pieces=tuple(content.pieces for content in contents),
        )

    async def cosines(self, ids: Sequence[MemoryId], vector: Vector) -> NDArray[np.float32]:
        point_ids = [self._point_id_of_memory(id_) for id_ in ids]
        known = self._cosines_of_cached_points([id_.int for id_ in point_ids], vector)
        if missing := [id_ for id_ in point_ids if id_.int not in known]:
            [hits] = await self._run_queries([_query_for_cosines(missing, vector)])
            known |= {hit.key: hit.score for hit in hits}
        return np.asarray([known.get(id_.int, 0.0) for id_ in point_ids], np.float32)

    def _cosines_of_cached_points(self, keys: Sequence[int], vector: Vector) -> dict[int, float]:
        """By the key of the point, without a query: of points whose vectors this process holds."""
        return {}

    def _point_id_of_memory(self, id_: MemoryId) -> UUID:
        return UUID(id_)

    async def _search_by_words_and_vector(
        self, scope: Scope, query: CandidateQuery, vector: AwaitQueryVector, terms: _QueryTermIds, known: IdfByTerm
    ) -> tuple[list[IndexPointHit], dict[int, float]]:
        """The fused hits of both channels, with the weights of the terms asked for, and the cosine of each that has a
        vector. Adds to `known`."""
        mine = IndexPointFilter(being=scope.being_id, project=scope.project)
        as_of = None if query.as_of is None else math.floor(query.as_of.timestamp())
        names = ("statuses", "categories", "themes", "since", "until", "include_compressed")
        where = replace(mine, as_of_seconds=as_of, **{name: getattr(query, name) for name in names})
        by_words = IndexPointQuery(
            where=where,
            limit=query.sparse_limit,
            terms=terms.query_terms,
            idf_corpus=mine,
            with_content=True,
        )
        [sparse_hits] = (
            await self._run_queries_and_cache_idf(known, scope, terms.all_terms, by_words)
            if terms.query_terms
            else [[]]
        )
        if (query_vector := await vector()) is None:
            return _fuse_hits_by_rrf([], sparse_hits), {}
        by_vector = replace(by_words, vector=query_vector, limit=query.dense_limit, ef=2 * query.dense_limit)
        queries = [replace(by_vector, known_keys=frozenset(hit.key for hit in sparse_hits))]
        if sparse_hits and not self._HOLDS_VECTORS_OF_HITS:
            queries.append(_query_for_cosines([hit.point_id for hit in sparse_hits], query_vector))
        dense_hits, *more = await self._run_queries(queries)
        fused = _fuse_hits_by_rrf(dense_hits, sparse_hits)
        cosines = {hit.key: hit.score for hits in (dense_hits, *more) for hit in hits}
        cosines |= self._cosines_of_cached_points([hit.key for hit in fused], query_vector)
        # A hit may have been written meanwhile, or have made room in the cache for another.
        missing = [hit.point_id for hit in fused if hit.key not in cosines]
        if missing and self._HOLDS_VECTORS_OF_HITS:
            [compared] = await self._run_queries([_query_for_cosines(missing, query_vector)])
            cosines |= {hit.key: hit.score for hit in compared}
        return fused, cosines

    async def _run_queries_and_cache_idf(
        self, known: IdfByTerm, scope: Scope, terms: Sequence[int], *queries: IndexPointQuery
    ) -> list[list[IndexPointHit]]:
        """The hits of `queries`; in the same batch the IDFs of new `terms` are looked up, each by its best document."""
        mine = IndexPointFilter(being=scope.being_id, project=scope.project)
        lookups = {
            term: IndexPointQuery(where=mine, limit=1, terms=[term], idf_corpus=mine, with_content=True)
            for term in terms
            if term not in known
        }
        if not queries and not lookups:
            return []
        hits = await self._run_queries([*queries, *lookups.values()])
        for term, best in zip(lookups, hits[len(queries) :], strict=True):
            known[term] = None
            for hit in best:
                if hit.content:
                    known[term] = hit.score / float(matrix_of_stored_bm25_weights([hit.content], [term])[0, 0])
        return hits[: len(queries)]

    async def _idf_of_terms(self, known: IdfByTerm, scope: Scope, terms: Sequence[int]) -> list[float]:
        """A term that no memory has gets the IDF of document frequency 0."""
        idfs = [known[term] for term in terms]
        absent = 0.0 if None not in idfs else _idf_of_absent_term(await self._count_memories_with_words(scope))
        return [absent if idf is None else idf for idf in idfs]

    async def _relative_idf_of_rarest_terms(
        self, known: IdfByTerm, scope: Scope, words: Iterable[Sequence[int]]
    ) -> NDArray[np.float32]:
        """float32, (words,): of each word's rarest term."""
        greatest = _idf_of_absent_term(await self._count_memories_with_words(scope))
        idfs = [max(await self._idf_of_terms(known, scope, terms), default=greatest) for terms in words]
        return np.asarray([min(1.0, idf / greatest) for idf in idfs], np.float32)


def _query_for_cosines(point_ids: Sequence[UUID], vector: Vector) -> IndexPointQuery:
    where = IndexPointFilter(point_ids=point_ids)
    return IndexPointQuery(where=where, limit=len(point_ids), vector=vector, exact=True)


def _idf_of_absent_term(documents: int) -> float:
    """Of document frequency 0."""
    return math.log(1 + (documents + 0.5) / 0.5)


def _rare_terms_of_word(word: str, terms: list[int], known: IdfByTerm, absent: float) -> list[int]:
    """Of a word that is cut into several terms those that few memories hold: the Arabic article is one of its own, and
    in a store of several languages few memories may hold it. `absent`: the IDF of a term that none has."""
    idfs = {term: known[term] for term in terms}
    has_unknown_part = None in idfs.values() and not UNSPACED_SCRIPT_CHAR_PATTERN.search(word)
    least = absent / 2 if has_unknown_part else MAX_COMMON_TERM_IDF
    return [term for term, idf in idfs.items() if idf is None or idf >= least] or terms


def _split_han_word_by_known_terms(word: str, terms: list[int], known: IdfByTerm) -> Iterator[tuple[str, list[int]]]:
    """A run of Han signs is often several words, told apart by what the memories hold: 咖啡品牌 is 咖啡, where they do,
    and 品牌, where none does. Each piece with its terms; pairs that join two pieces are left out, as are those of a
    date, which is one term by itself."""
    if len(word) < MIN_HAN_SIGNS_OF_TWO_WORDS or HAN_RUN_PATTERN.fullmatch(word) is None:
        yield word, terms
        return
    pairs = bm25.han_bigram_term_ids(word)
    is_known = [pair in terms and known[pair] is not None for pair in pairs]
    held = [any(is_known[max(at - 1, 0) : at + 1]) for at in range(len(word))]
    end = 0
    for is_held, run in groupby(held):
        start, end = end, end + len(list(run))
        of_piece = [pairs[at] for at in range(start, end - 1) if pairs[at] in terms and is_known[at] == is_held]
        if of_piece:
            yield word[start:end], of_piece


def _words_held_matrix(held: NDArray[np.bool_], positions: Mapping[str, Sequence[int]]) -> NDArray[np.bool_]:
    """bool, (n, words): of which words a candidate holds at least half of the terms, at these `positions`; of an
    identifier all: 10.20.4.71 is not 10.20.4.17."""
    columns = [
        held[:, terms].all(axis=1) if is_id_or_address_word(word) else held[:, terms].mean(axis=1) >= 1 / 2
        for word, terms in positions.items()
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(held), 0), np.bool_)


def _fuse_hits_by_rrf(dense_hits: Sequence[IndexPointHit], sparse_hits: Sequence[IndexPointHit]) -> list[IndexPointHit]:
    """Weighted RRF as Qdrant has it (`schema.RRF_CHANNEL_WEIGHTS`). Equals are in the order of their ids, in a channel
    too, where an engine gives them in any."""
    scores: dict[int, float] = {}
    hits: dict[int, IndexPointHit] = {}
    for channel, weight in zip((dense_hits, sparse_hits), RRF_CHANNEL_WEIGHTS, strict=True):
        best_first = sorted([(-round(hit.score, 6), hit.key) for hit in channel])
        for position, (_, key) in enumerate(best_first):
            scores[key] = scores.get(key, 0.0) + 1 / ((position + 1) / weight + RRF_RANK_CONSTANT - 1)
        hits |= {hit.key: hit for hit in channel}
    return [hits[key] for _, key in sorted([(-score, key) for key, score in scores.items()])]
