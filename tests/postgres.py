"""A PostgreSQL cluster of the tests' own, on a Unix socket in a temporary directory; a database for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from madeleine.storage.sql.database.location import PostgresLocation
from madeleine.storage.sql.database.opening import open_database
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger

MEMORY_DISK = Path("/dev/shm")
PORT = 5432
"""Names the socket; nothing listens on a network."""
FAST: Mapping[str, str] = {
    "fsync": "off", "full_page_writes": "off", "listen_addresses": "''", "shared_buffers": "32MB",
    "max_connections": "60", "autovacuum": "off", "max_wal_size": "64MB", "min_wal_size": "32MB",
}  # fmt: skip

INITDB_OPTIONS = ("-U", "madeleine", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
EMPTY = """
DO $$ DECLARE name TEXT; BEGIN
  SET LOCAL session_replication_role = replica;
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
    EXECUTE 'DELETE FROM ' || name;
  END LOOP;
  FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
    EXECUTE 'ALTER SEQUENCE ' || name || ' RESTART';
  END LOOP;
  INSERT INTO audit_numbers VALUES (0);
END $$
"""
"""Past the triggers of the audit."""


def server_programs() -> Path | None:
    """The folder of `initdb` and `postgres`: Debian keeps them out of the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).resolve().parent)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


@dataclass
class PostgresCluster:
    socket_folder: Path
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _template: str = ""

    def url(self, database: str) -> str:
        return f"postgresql://madeleine@/{database}?host={self.socket_folder}&port={PORT}"

    def log(self) -> str:
        return (self.socket_folder / "log").read_text()

    async def command(self, sql: str, database: str = "postgres") -> None:
        engine = create_async_engine(
            self.url(database).replace("postgresql:", "postgresql+asyncpg:"),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
        )
        async with engine.connect() as connection:
            await connection.execute(text(sql))

    @asynccontextmanager
    async def emptied_database(self) -> AsyncIterator[str]:
        """The URL of a store without memories: the same one each time, emptied sooner than another one is made."""
        if not self._template:
            async with self.database():
                pass
        yield self.url(self._template)
        await self.command(EMPTY, self._template)

    @asynccontextmanager
    async def database(self, *, empty: bool = False) -> AsyncIterator[str]:
        """The URL of a new database: of a store without memories, or without tables if `empty`."""
        if not self._template and not empty:
            await self.command("CREATE DATABASE template_store")
            async with open_database(PostgresLocation(self.url("template_store"), "")):
                self._template = "template_store"
        name = f"store_{next(self._numbers)}"
        await self.command(f"CREATE DATABASE {name}" + ("" if empty else f" TEMPLATE {self._template}"))
        try:
            yield self.url(name)
        finally:
            await self.command(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def postgres_cluster(programs: Path) -> Iterator[PostgresCluster]:
    """`postgres` refuses to run as root: then it runs as the user that Debian's package has made, or as nobody."""
    with tempfile.TemporaryDirectory(prefix="madeleine-pg-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as made:
        folder = Path(made)
        user = unprivileged_user(folder) if os.getuid() == 0 else None
        options: dict[str, Any] = {"user": user, "group": pwd.getpwuid(user).pw_gid, "extra_groups": []} if user else {}
        data = folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, *INITDB_OPTIONS], check=True, capture_output=True, cwd=folder, **options
        )
        settings = " ".join(f"-c {name}={value}" for name, value in FAST.items())
        control: list[str | Path] = [programs / "pg_ctl", "-D", data, "-w", "-s", "-l", folder / "log"]
        start: list[str | Path] = [*control, "-o", f"-k {folder} -p {PORT} {settings}", "start"]
        subprocess.run(start, check=True, stdin=subprocess.DEVNULL, cwd=folder, **options)
        try:
            yield PostgresCluster(folder)
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, cwd=folder, **options)


def unprivileged_user(folder: Path) -> int:
    names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    user = names.get("postgres", names["nobody"])
    os.chown(folder, user, pwd.getpwuid(user).pw_gid)
    return user


@asynccontextmanager
async def postgres_ledger(cluster: PostgresCluster, server: str = "first") -> AsyncIterator[LedgerRepositories]:
    async with cluster.emptied_database() as url, open_ledger(PostgresLocation(url, server)) as ledger:
        yield ledger
