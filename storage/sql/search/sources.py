"""The tables that keyword and tag search read: which rows are searched, and how a row becomes a hit (spec P11, H1).

The diary is not among them: its few entries are read and compared in `diary`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import (
    CTE,
    Boolean,
    ColumnElement,
    FromClause,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    func,
    or_,
    select,
)

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource
from madeleine.memory.model import Note, Provenance, Scope, memory_date, scene_to_text, texts_omitted_from_scene_line
from madeleine.memory.rules.dynamics.truth import end_of_superseded_version_text, version_start_date_text
from madeleine.memory.rules.searching import EXACT_SEARCH_WORD_CHAR_CLASS, term_needs_word_beginning
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text
from madeleine.storage.sql.database.dialect import (
    ANY_TEXT_PATTERN_BY_DIALECT,
    MAX_INT,
    MIN_INT,
    DialectName,
    glob_or_regex_matching_word,
    in_bound_list_condition,
    json_list_bind_value,
    sql_contains_text,
    sql_matches_pattern,
)
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.filters import period_binds
from madeleine.storage.sql.database.mapping import RowMapper, microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import (
    AS_OF_BIND,
    MEMORY_COLUMNS,
    MEMORY_IS_IN_BOUND_PROJECT,
    MEMORY_WAS_TRUE_AS_OF,
    fold_and_delimit_theme,
    memory_from_row,
)
from madeleine.storage.sql.database.session_projects import message_in_bound_project_condition
from madeleine.storage.sql.database.tables import memories_table, notes_table
from madeleine.storage.sql.tables.conversations import messages_table

_m, _n = memories_table.c, notes_table.c
_HAS_WINDOW_BIND = bindparam("has_window", type_=Boolean)
"""Whether `since` or `until` is given, and no other time is looked back to."""
_MESSAGE_ROW_MAPPER, _NOTE_ROW_MAPPER = RowMapper(ConversationMessage, messages_table), RowMapper(Note, notes_table)


@dataclass(frozen=True, eq=False)
class SearchedTable:
    """`time_column` and the id order hits. `spans`: first and last moments of what a row tells. `folded` is searched
    for terms and, in memories, `folded_themes` for whole themes. `conditions` hold for every hit; their binds are those
    of `keyword_query_binds`."""

    table: Table
    time_column: ColumnElement[int]
    columns: tuple[ColumnElement[Any], ...]
    to_hit: Callable[[Row], SearchHit]
    spans: tuple[tuple[ColumnElement[Any], ColumnElement[Any]], ...]
    conditions: tuple[ColumnElement[bool], ...] = ()

    def filter_conditions(self, themes: int) -> list[ColumnElement[bool]]:
        """The being, the window of time, the page, and all else that a query asks except its terms."""
        columns = self.table.c
        return [
            columns.being_id == bindparam("being"),
            _any_span_in_window_condition(self.spans),
            self.time_column <= bindparam("after_at"),
            or_(self.time_column < bindparam("after_at"), columns.id > bindparam("after_id")),
            *(sql_contains_text(columns.folded_themes, bindparam(f"theme_{n}")) for n in range(themes)),
            *self.conditions,
        ]

    def contains_terms_condition(
        self, mode: Literal["or", "and"], terms: int, table: FromClause | None = None
    ) -> ColumnElement[bool]:
        """`table`: an alias of it."""
        columns = (self.table if table is None else table).c
        contained = [_contains_term_condition(columns, n) for n in range(terms)]
        return and_(*contained) if mode == "and" else or_(*contained)


def _any_span_in_window_condition(
    spans: Iterable[tuple[ColumnElement[Any], ColumnElement[Any]]],
) -> ColumnElement[bool]:
    return or_(*(and_(start <= bindparam("until"), end >= bindparam("since")) for start, end in spans))


def _came_in_window_condition(columns: Any) -> ColumnElement[bool]:
    """Whether a day of it in the window came before it was superseded (`rules.dynamics.windows`)."""
    return or_(
        *(
            and_(_any_span_in_window_condition([(start, end)]), start < columns.valid_until)
            for start, end in _memory_spans(columns)
        )
    )


def _memory_spans(columns: Any) -> tuple[tuple[ColumnElement[Any], ColumnElement[Any]], ...]:
    """Of a memory's dates, and of what its text announces beside them (ADR 99)."""
    return (columns.span_start, columns.span_end), (columns.announced_start, columns.announced_end)


def _contains_term_condition(columns: Any, n: int) -> ColumnElement[bool]:
    edge: ColumnElement[str] = bindparam("edge", type_=Text)
    in_text = and_(
        sql_contains_text(columns.folded, bindparam(f"term_{n}")),
        # Of the few texts that hold the term: any, or those of which a word begins with it.
        or_(
            bindparam("within_words", type_=Boolean),
            sql_matches_pattern(edge + columns.folded, bindparam(f"begins_{n}", type_=Text)),
        ),
    )
    if "folded_themes" not in columns:
        return in_text
    return or_(in_text, sql_contains_text(columns.folded_themes, bindparam(f"whole_{n}")))


def _memory_hit(row: Row) -> SearchHit:
    memory = memory_from_row(row)
    return SearchHit(
        source="memories",
        id=memory.id,
        timestamp=memory.happened_at,
        text=scene_to_text(memory.scene, memory.feeling, dated=False),
        stored_at=memory.created_at,
        provenance=memory.provenance,
        actors=memory.scene.actors,
        further_texts=texts_omitted_from_scene_line(memory.scene),
        themes=memory.themes,
        status=memory.status,
        number=memory.number,
        when=memory_date(memory),
        lesson=memory.lesson,
        truth=memory.truth,
        since=version_start_date_text(memory),
        before=memory.before,
        until=end_of_superseded_version_text(memory),
        position=(microseconds_from_moment(memory.happened_at), memory.id),
    )


def _message_hit(row: Row) -> SearchHit:
    message = _MESSAGE_ROW_MAPPER.from_row(row)
    return SearchHit(
        source="chat",
        id=message.id,
        timestamp=message.at,
        text=message.text,
        stored_at=message.stored_at,
        provenance=Provenance(tool="chat", client=message.client, session_id=message.session_id),
        actors=(message.speaker or message.role,),
        position=(microseconds_from_moment(message.at), message.id),
    )


def _note_hit(row: Row) -> SearchHit:
    note = _NOTE_ROW_MAPPER.from_row(row)
    return SearchHit(
        source="notes",
        id=note.id,
        timestamp=note.created_at,
        text=note.content,
        stored_at=note.created_at,
        provenance=Provenance(tool="notes"),
        position=(microseconds_from_moment(note.created_at), note.id),
    )


def _all_later_versions_cte(start: Select[Any], name: str) -> CTE:
    """`start` and, for each of its rows, one with the id of each later version in its last column, `id`."""
    step, versions = memories_table.alias("step"), start.cte(name, recursive=True)
    following = func.coalesce(step.c.superseded_by, step.c.absorbed_into)
    kept = [column for column in versions.c if column.name != "id"]
    return versions.union(
        select(*kept, following)
        .select_from(versions.join(step, step.c.id == versions.c.id))
        .where(following.is_not(None))
    )


def _superseded_within_window() -> Select[Any]:
    """Superseded memories of a window of time of which a later version lies in it, too, and is shown in their place
    (`rules.dynamics.windows`). Only the index of superseded memories is read."""
    old, told = memories_table.alias("dated"), memories_table.alias("told_in_window")
    old_is_in_window, later_is_in_window = (
        _any_span_in_window_condition(_memory_spans(table.c)) for table in (old, told)
    )
    first = select(old.c.id.label("first"), old.c.superseded_by.label("id")).where(
        _HAS_WINDOW_BIND,
        old.c.being_id == bindparam("being"),
        old.c.superseded_by.is_not(None),
        old_is_in_window,
    )
    versions = _all_later_versions_cte(first, "versions_in_window")
    came_true = or_(told.c.truth == "current", and_(told.c.truth == "superseded", _came_in_window_condition(told.c)))
    found = versions.join(told, told.c.id == versions.c.id)
    return select(versions.c.first).select_from(found).where(later_is_in_window, came_true)


SEARCHED_TABLES = {
    "memories": SearchedTable(
        memories_table,
        _m.happened_at,
        MEMORY_COLUMNS,
        _memory_hit,
        _memory_spans(_m),
        conditions=(
            or_(
                bindparam("categories") == json_list_bind_value(()), in_bound_list_condition(_m.category, "categories")
            ),
            or_(bindparam("include_dead", type_=Boolean), _m.status != "dead"),
            # What is dead is shown on request, whatever passage holds its words.
            or_(bindparam("include_compressed", type_=Boolean), _m.compressed.is_(False), _m.status == "dead"),
            or_(bindparam("include_retracted", type_=Boolean), _m.truth != "retracted"),
            or_(
                bindparam("include_superseded", type_=Boolean),
                _m.truth != "superseded",
                and_(_HAS_WINDOW_BIND, _came_in_window_condition(_m), _m.id.not_in(_superseded_within_window())),
            ),
            or_(AS_OF_BIND.is_(None), MEMORY_WAS_TRUE_AS_OF),
            MEMORY_IS_IN_BOUND_PROJECT,
        ),
    ),
    "chat": SearchedTable(
        messages_table,
        messages_table.c.at,
        _MESSAGE_ROW_MAPPER.columns,
        _message_hit,
        ((messages_table.c.at, messages_table.c.at),),
        conditions=(message_in_bound_project_condition(messages_table.c),),
    ),
    # A scene note that was taken in is found as the memory it became.
    "notes": SearchedTable(
        notes_table,
        _n.created_at,
        _NOTE_ROW_MAPPER.columns,
        _note_hit,
        ((_n.created_at, _n.created_at),),
        conditions=(or_(_n.type != "scene", _n.state != "done"),),
    ),
}


@lru_cache(maxsize=256)
def keyword_hits_statement(source: SearchSource, mode: Literal["or", "and"], terms: int, themes: int) -> Select[Any]:
    """The statement of a keyword query by what decides its SQL, so that each is compiled once."""
    searched = SEARCHED_TABLES[source]
    hits = select(*searched.columns).where(*searched.filter_conditions(themes))
    if terms:
        is_hit = searched.contains_terms_condition(mode, terms)
        if source == "memories":
            is_hit = or_(
                is_hit,
                _m.id.in_(_successors_of_hits(mode, terms)),
                _m.id.in_(_predecessors_of_hits_as_of(mode, terms)),
            )
        hits = hits.where(is_hit)
    return hits.order_by(searched.time_column.desc(), searched.table.c.id).limit(bindparam("limit"))


def _successors_of_hits(mode: Literal["or", "and"], terms: int) -> Select[Any]:
    """All later versions of superseded memories with the terms. Only the index of superseded memories is read."""
    old = memories_table.alias("old")
    contained = SEARCHED_TABLES["memories"].contains_terms_condition(mode, terms, old)
    later = select(old.c.superseded_by.label("id")).where(
        old.c.being_id == bindparam("being"), old.c.superseded_by.is_not(None), contained
    )
    return select(_all_later_versions_cte(later, "later").c.id)


def _predecessors_of_hits_as_of(mode: Literal["or", "and"], terms: int) -> Select[Any]:
    """As of a past time, the superseded memories that were true then and of which a later version has the terms; none
    without such a time. At most one of each chain, so that its length costs no more than one walk."""
    old, told = memories_table.alias("earlier"), memories_table.alias("told")
    first = select(old.c.id.label("first"), old.c.superseded_by.label("id")).where(
        old.c.being_id == bindparam("being"),
        old.c.superseded_by.is_not(None),
        old.c.valid_until > AS_OF_BIND,
        or_(old.c.valid_from.is_(None), old.c.valid_from <= AS_OF_BIND),
    )
    versions = _all_later_versions_cte(first, "versions")
    contained = SEARCHED_TABLES["memories"].contains_terms_condition(mode, terms, told)
    is_searched = or_(bindparam("include_retracted", type_=Boolean), told.c.truth != "retracted")
    found = versions.join(told, told.c.id == versions.c.id)
    return select(versions.c.first).select_from(found).where(contained, is_searched)


@lru_cache(maxsize=8)
def hits_by_ids_statement(source: SearchSource) -> Select[Any]:
    searched = SEARCHED_TABLES[source]
    columns = searched.table.c
    return select(*searched.columns).where(
        columns.being_id == bindparam("being"), in_bound_list_condition(columns.id, "ids")
    )


@lru_cache(maxsize=8)
def recent_texts_statement(source: SearchSource) -> Select[Any]:
    searched = SEARCHED_TABLES[source]
    columns = searched.table.c
    return (
        select(columns.folded)
        .where(columns.being_id == bindparam("being"))
        .order_by(searched.time_column.desc(), columns.id)
        .limit(bindparam("most"))
    )


def keyword_query_binds(scope: Scope, query: KeywordQuery, dialect: DialectName) -> dict[str, Any]:
    after_at, after_id = query.after or (MAX_INT, "")
    after_at = max(MIN_INT, min(after_at, MAX_INT))  # a cursor comes from outside, and may hold any number
    binds: dict[str, Any] = {
        "being": scope.being_id,
        "project": scope.project,
        **period_binds(query.since, query.until),
        "after_at": after_at,
        "after_id": after_id,
        "limit": query.limit,
        "categories": json_list_bind_value(query.categories),
        "include_dead": query.include_dead,
        "include_compressed": query.include_compressed,
        "include_retracted": query.include_retracted,
        "include_superseded": query.as_of is not None,
        "has_window": query.as_of is None and (query.since or query.until) is not None,
        "as_of": microseconds_from_moment(query.as_of) if query.as_of else None,
    }
    binds |= {f"term_{n}": fold_text(term) for n, term in enumerate(query.terms)}
    binds |= {"within_words": query.within_words, "edge": FOLDED_FIELD_SEPARATOR} if query.terms else {}
    binds |= {f"begins_{n}": _pattern_of_beginning_word(fold_text(term), dialect) for n, term in enumerate(query.terms)}
    binds |= {f"whole_{n}": fold_and_delimit_theme(term) for n, term in enumerate(query.terms)}
    return binds | {f"theme_{n}": fold_and_delimit_theme(theme) for n, theme in enumerate(query.themes)}


def _pattern_of_beginning_word(folded_term: str, dialect: DialectName) -> str:
    if not term_needs_word_beginning(folded_term):
        return ANY_TEXT_PATTERN_BY_DIALECT[dialect]
    return glob_or_regex_matching_word(dialect, folded_term, EXACT_SEARCH_WORD_CHAR_CLASS, whole=False)
