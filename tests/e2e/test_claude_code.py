"""Claude Code finds the server over HTTP. It needs no account to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.http_serving import serving
from tests.e2e.npm import npx, output_of

CLAUDE = "@anthropic-ai/claude-code@2.1.330"

pytestmark = pytest.mark.slow


async def test_claude_mcp_list_shows_the_server_connected(tmp_path: Path) -> None:
    code, said = await output_of(npx(CLAUDE, "--version"), home=tmp_path, cwd=tmp_path)
    if code:
        pytest.skip(f"{CLAUDE} cannot be installed here: {said[-300:]}")
    async with serving(tmp_path / "data") as server:
        authorization = f"Authorization: Bearer {await server.token()}"
        add = ["mcp", "add", "--transport", "http", "madeleine", server.settings.resource, "--header", authorization]
        code, said = await output_of(npx(CLAUDE, *add), home=tmp_path, cwd=tmp_path)
        assert code == 0, said
        code, said = await output_of(npx(CLAUDE, "mcp", "list"), home=tmp_path, cwd=tmp_path)
    assert code == 0, said
    [line] = [line for line in said.splitlines() if line.startswith("madeleine:")]
    assert "Connected" in line, said
