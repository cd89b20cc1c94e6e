"""Claude Code finds the server, over HTTP and over stdio. It needs no account to look."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.clients.npm import npx, output_of
from tests.e2e.hosting import no_host_left
from tests.e2e.http.http_serving import serving

CLAUDE = "@anthropic-ai/claude-code@2.1.330"

pytestmark = pytest.mark.slow


async def claude(home: Path, *arguments: str) -> str:
    code, said = await output_of(npx(CLAUDE, *arguments), home=home, cwd=home)
    assert code == 0, said
    return said


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    code, said = await output_of(npx(CLAUDE, "--version"), home=tmp_path, cwd=tmp_path)
    if code:
        pytest.skip(f"{CLAUDE} cannot be installed here: {said[-300:]}")
    return tmp_path


async def assert_connected(home: Path) -> None:
    said = await claude(home, "mcp", "list")
    [line] = [line for line in said.splitlines() if line.startswith("madeleine:")]
    assert "Connected" in line, said


async def test_claude_mcp_list_shows_the_server_connected_over_http(home: Path) -> None:
    async with serving(home / "data") as server:
        authorization = f"Authorization: Bearer {await server.token()}"
        add = [
            "mcp",
            "add",
            "--transport",
            "http",
            "madeleine",
            server.settings.oauth_resource_url,
            "--header",
            authorization,
        ]
        await claude(home, *add)
        await assert_connected(home)


async def test_claude_mcp_list_shows_the_server_connected_over_stdio(home: Path) -> None:
    data_dir = home / "data"
    with no_host_left(data_dir):
        setting = f"MADELEINE_DATA_DIR={data_dir}"
        await claude(home, "mcp", "add", "madeleine", "-e", setting, "--", sys.executable, "-m", "madeleine")
        await assert_connected(home)
