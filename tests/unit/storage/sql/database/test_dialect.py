"""Every statement compiles for SQLite and for PostgreSQL; what differs stands in the dialect module alone."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ClauseElement, Executable, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from madeleine.storage import sql
from madeleine.storage.sql.database.mapping import update_row_of_being_statement
from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.patrols.journal import JOURNALLED_TABLES_BY_KIND
from madeleine.storage.sql.search.repository import cooccurring_themes_statement, texts_holding_search_tags_statement
from madeleine.storage.sql.search.sources import SEARCHED_TABLES, hits_by_ids_statement, keyword_hits_statement

DIALECTS = {"sqlite": sqlite.dialect(paramstyle="named"), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]
ROOT = Path(sql.__file__).parent
ITS_OWN_SQL = {
    f"database/{name}.py"
    for name in (
        *("backup", "dialect", "inspection", "opening", "schema", "snapshot", "sqlite"),
        *("postgresql", "postgresql_schema"),
    )
}
SQLITE_ONLY = re.compile(r"sqlite|json_each|json_extract|json_set|INSERT OR|PRAGMA|rowid|GLOB|\btext\(\"|\.op\(")


def modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(sql.__path__, "madeleine.storage.sql."):
        if ".migrations" not in module.name:
            yield importlib.import_module(module.name)


def statements() -> dict[str, ClauseElement]:
    """Those that are made when a module is imported, and those that are made for a query."""
    found: dict[str, ClauseElement] = {}
    for module in modules():
        for name, value in vars(module).items():
            for place, one in enumerate(value if isinstance(value, tuple | list) else [value]):
                if isinstance(one, ClauseElement) and isinstance(one, Executable) and not isinstance(one, Table):
                    found[f"{module.__name__.removeprefix('madeleine.storage.sql.')}.{name}.{place}"] = one
    for source, searched in SEARCHED_TABLES.items():
        themes = 1 if "folded_themes" in searched.table.c else 0
        found |= {f"search.{source}.{mode}": keyword_hits_statement(source, mode, 2, themes) for mode in ("or", "and")}
        found[f"search.by_id.{source}"] = hits_by_ids_statement(source)
        found[f"search.tags.{source}"] = texts_holding_search_tags_statement(source, themes, 2, 1)
    found["search.themes_of_each_recent_memory_with_tag"] = cooccurring_themes_statement(2)
    for kind, journalled in JOURNALLED_TABLES_BY_KIND.items():
        found |= {f"undo.{kind}.insert": journalled.insert_row, f"undo.{kind}.delete": journalled.delete_row}
        found[f"undo.{kind}.select"] = journalled.select_rows
        found[f"undo.{kind}.update"] = update_row_of_being_statement(
            journalled.table, *journalled.columns, key=journalled.key
        )
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_compiles(dialect: str) -> None:
    found = statements()
    assert len(found) > 150
    for name, one in found.items():
        compiled = str(one.compile(dialect=DIALECTS[dialect]))
        assert compiled, name
        if dialect == "postgresql":
            assert not re.search(r"\b(json_each|instr|json_extract|json_set)\(", compiled), name


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_table_and_index_compiles(dialect: str) -> None:
    for table in metadata.tables.values():
        assert str(CreateTable(table).compile(dialect=DIALECTS[dialect]))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=DIALECTS[dialect]))


def test_only_the_modules_of_the_dialect_and_of_the_file_hold_sqlite_s_own_sql() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): match.group()
        for path in ROOT.rglob("*.py")
        if "migrations" not in path.parts and (match := SQLITE_ONLY.search(_code(path.read_text())))
    }
    assert set(found) <= ITS_OWN_SQL, found


def _code(source: str) -> str:
    """Without docstrings, comments and the tables' option for SQLite."""
    without_docs = re.sub(r'"""[\s\S]*?"""', "", source)
    return re.sub(r"#.*|sqlite_autoincrement=True|json_(items|field|with_field|without_field)", "", without_docs)
