"""The tables on PostgreSQL, made from the same declarations as SQLite's, and migrated by the same migrations.

A new store begins with the tables as they are declared, at the revision that is the newest then. Migrations that come
later are run on it as on a file.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler, PGTypeCompiler
from sqlalchemy.types import Integer, Text

from madeleine.storage.sql.database.schema import (
    NEWEST_SCHEMA_REVISION,
    migrate_connection_to_newest,
    require_known_schema_revision,
    stamp_newest_schema_revision,
)

NOTIFY_CHANNEL = "madeleine_changes"
"""Notified, with the names of the schema and of the writer, when a commit leaves marks for the index, or for the
erasure of what was forgotten."""
TABLES_NOTIFYING_CHANGES = ("index_pending", "forgotten")
_TAKE_MIGRATION_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('madeleine schema'), hashtext(current_schema()))")
_CREATE_TRIGGERS_STATEMENTS = (
    "CREATE TABLE audit_numbers (last BIGINT NOT NULL)",
    "INSERT INTO audit_numbers VALUES (0)",
    "CREATE FUNCTION madeleine_number() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN UPDATE audit_numbers SET last = last + 1 RETURNING last INTO NEW.seq; RETURN NEW; END $$",
    "CREATE TRIGGER audit_number BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION madeleine_number()",
    "CREATE FUNCTION madeleine_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the audit can only be appended to'; END $$",
    "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION madeleine_refuse()",
    "CREATE FUNCTION madeleine_notify() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN PERFORM pg_notify('{NOTIFY_CHANNEL}', TG_TABLE_SCHEMA || ' ' || current_setting('application_name')); "
    "RETURN NULL; END $$",
    *(
        f"CREATE TRIGGER {name}_notify AFTER INSERT ON {name} FOR EACH STATEMENT EXECUTE FUNCTION madeleine_notify()"
        for name in TABLES_NOTIFYING_CHANGES
    ),
)


class _WideIntegerTypeCompiler(PGTypeCompiler):
    def visit_INTEGER(self, type_: Integer, **options: Any) -> str:
        """SQLite's integers have 64 bits."""
        return "BIGINT"


class _PostgresColumnDdlCompiler(PGDDLCompiler):
    def get_column_specification(self, column: Any, **options: Any) -> str:
        """Texts are compared by their bytes, as SQLite compares them; numbers of rows are not given out again."""
        is_text = isinstance(column.type, Text)
        if column.primary_key and column is column.table._autoincrement_column:
            return f"{self.preparer.format_column(column)} BIGSERIAL NOT NULL"
        specification: str = super().get_column_specification(column, **options)  # type: ignore[no-untyped-call]
        return specification.replace(" TEXT", ' TEXT COLLATE "C"', 1) if is_text else specification


def use_type_compilers_matching_sqlite(engine: Engine) -> None:
    """Also for the casts of bound values, which asyncpg needs."""
    dialect: Any = engine.dialect
    dialect.type_compiler_instance = _WideIntegerTypeCompiler(dialect)
    dialect.ddl_compiler = _PostgresColumnDdlCompiler


def migrate_postgres_tables(connection: Connection) -> None:
    """Make the tables, or bring them to the newest schema, in the connection's transaction. Raises `StorageError` for
    a store of a newer version."""
    from madeleine.storage.sql.database.tables import metadata

    connection.execute(_TAKE_MIGRATION_LOCK)
    revision = schema_revision_of_connection(connection)
    if revision == NEWEST_SCHEMA_REVISION:
        return
    if revision is not None:
        require_known_schema_revision(revision, "in PostgreSQL")
        migrate_connection_to_newest(connection)
        return
    metadata.create_all(connection)
    for statement in _CREATE_TRIGGERS_STATEMENTS:
        connection.exec_driver_sql(statement)
    stamp_newest_schema_revision(connection)


def schema_revision_of_connection(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
    return str(row[0]) if row else None
