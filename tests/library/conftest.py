"""The library over each of its connections, with one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

import madeleine
from tests.e2e.hosting import no_host_left
from tests.e2e.http.http_serving import Served, serving
from tests.e2e.serving import furnish


class Connections(Protocol):
    def connect(self, being: str = "ada") -> AbstractAsyncContextManager[madeleine.Memory]:
        """A new connection to the memory of a being; all share one store."""
        ...


@dataclass(frozen=True, slots=True)
class OverSocket:
    """The beings of a test are its own: a start of a host takes a hundred times as long as a connection."""

    data_dir: Path
    number: int

    def connect(self, being: str = "ada") -> AbstractAsyncContextManager[madeleine.Memory]:
        return madeleine.connect(being=f"{being}-{self.number}", data_dir=self.data_dir)


@dataclass(frozen=True, slots=True)
class OverHttp:
    served: Served
    tokens: dict[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def connect(self, being: str = "ada") -> AsyncIterator[madeleine.Memory]:
        if being not in self.tokens:
            self.tokens[being] = await self.served.token(being, role="senior")
        async with madeleine.connect(url=f"{self.served.url}/mcp", token=self.tokens[being]) as memory:
            yield memory


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory whose host outlives no test."""
    monkeypatch.setenv("MADELEINE_THREAD", "off")
    folder = tmp_path / "data"
    furnish(folder)
    with no_host_left(folder):
        yield folder


@pytest.fixture(scope="session")
def shared_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("library") / "data"
    furnish(folder)
    with no_host_left(folder):
        yield folder


_numbers = count(1)


@pytest.fixture(params=["socket", "http"])
async def connections(
    request: pytest.FixtureRequest, shared_data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Connections]:
    if request.param == "socket":
        monkeypatch.setenv("MADELEINE_THREAD", "off")
        yield OverSocket(shared_data_dir, next(_numbers))
    else:
        folder = tmp_path / "data"
        furnish(folder)
        async with serving(folder) as served:
            yield OverHttp(served)
