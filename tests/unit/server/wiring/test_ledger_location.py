"""Where the ledger is: a file in the data directory, or PostgreSQL (ADR 69)."""

from __future__ import annotations

from pathlib import Path

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.settings import Settings, read_settings
from madeleine.server.wiring.data_directory import (
    LEDGER_FILE,
    SERVER_ID_OF_COMMON_QDRANT_INDEX,
    ledger_location,
    ledger_path,
)
from madeleine.storage.sql.database.location import PostgresLocation

URL = "postgresql://madeleine:secret@db.example/madeleine"


def test_a_directory_keeps_its_server_s_id_and_all_share_an_index_on_a_qdrant_server(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=URL)
    first = ledger_location(settings)
    assert isinstance(first, PostgresLocation)
    assert first.url == URL
    assert ledger_location(settings) == first
    (tmp_path / "other").mkdir()
    other = ledger_location(settings.model_copy(update={"data_dir": tmp_path / "other"}))
    assert isinstance(other, PostgresLocation)
    assert other.server != first.server
    shared = settings.model_copy(update={"qdrant_url": "http://localhost:6333"})
    assert ledger_location(shared) == PostgresLocation(URL, SERVER_ID_OF_COMMON_QDRANT_INDEX)
    assert "secret" not in repr(settings)


def test_a_memory_in_a_file_beside_it_is_not_passed_over(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=URL)
    (tmp_path / LEDGER_FILE).touch()
    with pytest.raises(InvalidInput, match="madeleine export"):
        ledger_location(settings)
    with pytest.raises(InvalidInput, match="pg_dump"):
        ledger_path(settings)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"MADELEINE_DATABASE_URL": "sqlite:///x"}, "it must begin with postgresql://"),
        ({"MADELEINE_DATABASE_URL": URL, "MADELEINE_BACKUP_HOURS": "1"}, "use pg_dump"),
    ],
)
def test_what_cannot_be_is_refused_without_the_password(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        read_settings({"MADELEINE_DATA_DIR": str(tmp_path)} | variables)
    assert "secret" not in str(refused.value)
