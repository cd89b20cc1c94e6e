"""`madeleine serve --http` and `madeleine token`, as processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests.e2e.hosting import asking
from tests.e2e.http.http_serving import bearer, call, headers_of
from tests.e2e.serving import ROOT, command, environment
from tests.waiting import DEADLOCK_S

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="its event loop takes no signals")]


def madeleine(data_dir: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command(), *arguments],
        env=environment(data_dir, **settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLOCK_S,
        check=False,
    )


@contextmanager
def process(
    data_dir: Path, *arguments: str, before: str = "", **settings: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server, and its URL; `before`: a shell command that changes its limits."""
    shell = ["sh", "-c", f'{before} && exec "$@"', "sh"] if before else []
    with subprocess.Popen(
        [*shell, *command(), "serve", "--http", "--port", "0", *arguments],
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
        httpx.Client(timeout=DEADLOCK_S) as client,
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
        assert server.wait(timeout=DEADLOCK_S) == 0
        assert server.stderr
        log = server.stderr.read()
    assert "POST /mcp 200" in log
    assert secret not in log
    assert "Traceback" not in log
    assert not (tmp_path / "owner.json").exists()


def test_a_token_is_made_for_the_server_that_runs(tmp_path: Path) -> None:
    """Its port came from its command line; a token for the default port was refused there."""
    with process(tmp_path) as (_, url), httpx.Client(timeout=DEADLOCK_S) as client:
        made = madeleine(tmp_path, "token", "create", "--json")
        token = json.loads(made.stdout)
        assert token["resource"] == url
        assert (listed(client, url, token["token"]), listed(client, url)) == (200, 401)


def test_silent_sockets_beyond_the_open_files_stop_neither_http_nor_stdio(tmp_path: Path) -> None:
    """1,100 of them under `ulimit -n 1024` stopped everything, and wrote 289 MB of log in 90 s."""
    with (
        process(tmp_path, before="ulimit -Sn 256; ulimit -Hn 1024") as (server, url),
        httpx.Client(timeout=DEADLOCK_S) as client,
        ExitStack() as silent,
    ):
        limits = Path(f"/proc/{server.pid}/limits").read_text(encoding="utf-8")
        assert re.search(r"Max open files +1024 +1024 ", limits)
        port = httpx.URL(url).port
        for _ in range(1_100):
            silent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=DEADLOCK_S))
        assert client.get(url.replace("/mcp", "/health")).status_code == 200
        assert listed(client, url) == 200
        with asking(tmp_path) as asker:
            asker.call(1, "recall", query="Which lamp is broken?")
            assert "result" in asker.wait_for(1)[0]
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=DEADLOCK_S) == 0
        assert server.stderr
        assert len(server.stderr.read().splitlines()) < 100


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
