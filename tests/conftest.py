"""For all tests."""

from __future__ import annotations

import gc
import os
import random
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from madeleine import operating_system
from madeleine.storage.sql.database import schema
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.household import Household, household, new_store
from tests.postgres import PostgresCluster, postgres_cluster, postgres_ledger, server_programs

# A busy machine is slow, not wrong: no deadline for a single example.
settings.register_profile("madeleine", deadline=None)
settings.load_profile("madeleine")

MEMORY_DISK = Path("/dev/shm")
MIN_MEMORY_DISK_BYTES = 4_000_000_000
LONGEST_MODULE = "test_long_run.py"
"""Begun first: all else is done while it runs."""


LEFT_OUT_FOLDERS: Mapping[str, tuple[str, ...]] = {"linux": (), "macos": ("faults",), "windows": ("faults", "e2e")}
"""Tests that find processes by `/proc` and end them by signals."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    folder = collection_path.relative_to(Path(__file__).parent).parts[:1]
    return True if folder and folder[0] in LEFT_OUT_FOLDERS[operating_system.OPERATING_SYSTEM] else None


def pytest_configure() -> None:
    gc.disable()  # until all is imported: looking for garbage takes half of the time
    put_temporary_directories_in_memory()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules in a mixed order, the same in every process: those that start servers stand side by side in folders, and
    the worker that gets such a folder would end long after the others."""
    modules = sorted({item.path for item in items})
    random.Random(len(modules)).shuffle(modules)
    modules.sort(key=lambda module: module.name != LONGEST_MODULE)
    place = {module: number for number, module in enumerate(modules)}
    items.sort(key=lambda item: place[item.path])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def put_temporary_directories_in_memory() -> None:
    """Temporary directories are kept where there is room for them: thousands of stores wait for a disk to sync for
    longer than they compute. A killed process leaves there what it leaves on a disk."""
    if not MEMORY_DISK.is_dir():
        return
    disk = os.statvfs(MEMORY_DISK)
    if not disk.f_flag & os.ST_NOEXEC and disk.f_bavail * disk.f_frsize >= MIN_MEMORY_DISK_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `new_store` keeps what it copies."""
    return tmp_path_factory.mktemp("templates")


@pytest.fixture(scope="session", autouse=True)
def _new_stores_are_copied(templates: Path) -> Iterator[None]:
    """A store that a test opens where there is none is not migrated through every revision again."""
    migrate, template = schema._run_migrations, new_store(templates, templates / "copied.db")

    def copy_or_migrate(path: Path, revision: str | None) -> None:
        if revision is None and path.stat().st_size == 0:
            shutil.copyfile(template, path)
        else:
            migrate(path, revision)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_run_migrations", copy_or_migrate)
        yield


@pytest.fixture
def new_db(tmp_path: Path, templates: Path) -> Path:
    """An empty store, `memory.db` in `tmp_path`."""
    return new_store(templates, tmp_path / "memory.db")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """A cluster of its own for each process of the tests, begun when the first test needs it."""
    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server programs are not installed (on Debian: apt-get install postgresql)")
    with postgres_cluster(programs) as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgresql"])
async def sql_ledger(request: pytest.FixtureRequest) -> AsyncIterator[LedgerRepositories]:
    """An empty ledger, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        opened = open_ledger(request.getfixturevalue("new_db"))
    else:
        opened = postgres_ledger(request.getfixturevalue("postgres"))
    async with opened as ledger:
        yield ledger


@pytest.fixture
async def home(new_db: Path) -> AsyncIterator[Household]:
    """A store of its own, with the use cases over it."""
    async with household(new_db) as found:
        yield found
