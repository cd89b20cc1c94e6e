"""The official conformance suite, put to the product's own HTTP application around the suite's tools."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from madeleine.memory.model import BeingId
from madeleine.server.http.app import GracefulHttpShutdown, build_http_app, open_http_listener, run_uvicorn
from madeleine.server.http.authentication import BearerTokenVerifier
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import HttpSettings
from madeleine.storage.sql.administration import open_bearer_token_repository
from tests.conformance.events import MemoryEvents
from tests.conformance.server import conformance_server
from tests.e2e.clients.npm import npx, output_of

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
EXPECTED_FAILURES = Path(__file__).parents[2] / "conformance" / "expected_failures.yaml"

pytestmark = [
    pytest.mark.slow,
    # What 2026-07-28 deprecates, the suite of 2025-11-25 still asks of its tools.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@asynccontextmanager
async def listening(directory: Path) -> AsyncIterator[str]:
    end, shutdown = anyio.Event(), GracefulHttpShutdown()
    with open_http_listener("127.0.0.1", 0) as listener:
        settings = HttpSettings(http_port=listener.getsockname()[1])
        async with open_bearer_token_repository(directory / "memory.db") as tokens, anyio.create_task_group() as tasks:
            verifier = BearerTokenVerifier(tokens)
            anonymous = Caller(BeingId("ada"))
            # Madeleine's calls are short and need no event store; the suite resumes broken streams.
            resumable = partial(StreamableHTTPSessionManager, event_store=MemoryEvents(), retry_interval=100)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("madeleine.server.http.app.StreamableHTTPSessionManager", resumable)
                app = build_http_app(conformance_server(), settings, verifier, shutdown, anonymous=anonymous)

            async def serve() -> None:
                await run_uvicorn(app, listener, shutdown, stop_event=end)

            tasks.start_soon(serve)
            try:
                yield settings.oauth_resource_url
            finally:
                end.set()


@pytest.mark.parametrize(("revision", "scenarios"), [("2025-11-25", 33), ("2026-07-28", 40)])
async def test_every_scenario_of_the_revision_passes_but_those_of_tasks(
    tmp_path: Path, revision: str, scenarios: int
) -> None:
    """The suite's exit code does not count what came after the release, so its summary is read."""
    async with listening(tmp_path) as url:
        arguments = ["server", "--url", url, "--requirements", revision, "--output-dir", str(tmp_path / "results")]
        code, said = await output_of(
            npx(SUITE, *arguments, "--expected-failures", str(EXPECTED_FAILURES)), home=tmp_path, seconds=600
        )
    summary = said.partition("=== SUMMARY ===")[2]
    failed = set(re.findall(r"✗ (\S+): ", summary))
    passed = set(re.findall(r"✓ (\S+): [1-9]", summary))
    assert failed <= set(re.findall(r"- (tasks-\S+)", EXPECTED_FAILURES.read_text(encoding="utf-8"))), said[-20_000:]
    assert len(passed) >= scenarios, summary
    assert code == 0, said[-20_000:]
