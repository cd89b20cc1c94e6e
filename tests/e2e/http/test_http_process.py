"""`madeleine serve --http` and `madeleine token`, as processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests.e2e.http.http_serving import bearer, call, headers_of
from tests.e2e.serving import ROOT, TIMEOUT_SECONDS, command, environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its event loop takes no signals")


def madeleine(data_dir: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command(), *arguments],
        env=environment(data_dir, **settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@contextmanager
def process(data_dir: Path, *arguments: str, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server, and its URL."""
    with subprocess.Popen(
        [*command(), "serve", "--http", "--port", "0", *arguments],
        env=environment(data_dir, **settings),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    ) as found:
        try:
            assert found.stderr
            yield found, url_in(found.stderr)
        finally:
            found.kill()


def url_in(log: IO[str]) -> str:
    for line in log:
        if listening := re.search(r"Madeleine listens on (http://\S+)", line):
            return listening[1]
    raise AssertionError("the server ended before it listened")


def listed(client: httpx.Client, url: str, token: str = "") -> int:
    message = call("tools/list")
    return client.post(url, json=message, headers=headers_of(message) | (bearer(token) if token else {})).status_code


def test_a_token_made_and_revoked_beside_the_server_counts_at_once_and_is_in_no_log(tmp_path: Path) -> None:
    with (
        process(tmp_path, MADELEINE_LOG_LEVEL="debug") as (server, url),
        httpx.Client(timeout=TIMEOUT_SECONDS) as client,
    ):
        assert listed(client, url) == 200
        made = madeleine(tmp_path, "token", "create", "--being", "bo", "--name", "desk", "--resource", url)
        token = made.stdout.strip()
        assert listed(client, url) == 401
        assert listed(client, url, token) == 200
        client.get(url, params={"access_token": token})
        shown = madeleine(tmp_path, "token", "list").stdout
        id_, secret = token.split("_", 2)[1:]
        assert id_ in shown
        assert "desk" in shown
        assert secret not in shown + made.stderr
        assert madeleine(tmp_path, "token", "revoke", id_).returncode == 0
        assert listed(client, url, token) == 401
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=TIMEOUT_SECONDS) == 0
        assert server.stderr
        log = server.stderr.read()
    assert "POST /mcp 200" in log
    assert secret not in log
    assert "Traceback" not in log
    assert not (tmp_path / "owner.json").exists()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "MADELEINE_ALLOWED_HOSTS"),
        ({"MADELEINE_ALLOWED_HOSTS": "memory.example.org"}, "madeleine token create"),
    ],
)
def test_an_address_of_the_network_is_refused_until_names_and_tokens_are_set(
    tmp_path: Path, settings: dict[str, str], says: str
) -> None:
    done = madeleine(tmp_path, "serve", "--http", "--host", "0.0.0.0", "--port", "0", **settings)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told_with_what_to_do(tmp_path: Path) -> None:
    with process(tmp_path / "one") as (_, url):
        port = str(httpx.URL(url).port)
        done = madeleine(tmp_path / "two", "serve", "--http", "--port", port)
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
