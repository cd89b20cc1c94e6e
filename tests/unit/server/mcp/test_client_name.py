"""The name that a client gives itself is kept as provenance, with each memory and in the audit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from madeleine.server.mcp.server import client_name_of_request


def client_named(name: str) -> Any:
    return SimpleNamespace(
        session=SimpleNamespace(client_params=SimpleNamespace(client_info=SimpleNamespace(name=name)))
    )


def test_a_client_name_holds_no_secret_and_no_signs_that_hide() -> None:
    secret = "ghp" + "_" + "a1b2c3d4e5" * 4
    assert client_name_of_request(client_named(f"My\x1b[31m\n editor\u202e {secret}")) == (
        "My editor [redacted: github token]"
    )
    assert len(client_name_of_request(client_named("x" * 100_000))) == 100
