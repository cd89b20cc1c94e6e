"""A host that stays, for tests that need a memory of their own and no process of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from mcp.client.client import Client

from tests.e2e.hosting import asking, hosted, no_host_left
from tests.e2e.serving import Era


@dataclass(frozen=True, slots=True)
class Lodger:
    """A being in a data directory where there are others (spec P1). A start of the server takes a hundred times as long
    as one more client of its host."""

    data_dir: Path
    being: str

    def connected(
        self, *, era: Era = "legacy", more: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Client]:
        """A real client, by the command that MCP clients start. `more`: settings that are a client's own."""
        return hosted(self.data_dir, being=self.being, era=era, more=more)


@pytest.fixture(scope="session")
def common_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its host goes on as long as the tests of this process do."""
    folder = tmp_path_factory.mktemp("common") / "data"
    with no_host_left(folder), asking(folder, being="landlord") as landlord:
        # Else a test's client could start the host, which serves all others with that client's language model.
        landlord.call(1, "recall_memory")
        landlord.wait_for(1)
        yield folder


_numbers = count(1)


@pytest.fixture
def lodger(common_dir: Path) -> Lodger:
    """Nobody else is this being."""
    return Lodger(common_dir, f"lodger-{next(_numbers)}")
