"""A day in miniature: many calls of several clients, and the host's memory does not grow with them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made_up_scenes import questions, texts
from tests.e2e.hosting import Asker, hosts_of, no_host_left

CLIENTS = 4
SCENES = 500
WARM_UP = 12_000
CALLS = 20_000
"""The warm-up among them."""
MOST_GROWTH = 18 * 1024 * 1024
PATROL_EACH = 2_500
IN_FLIGHT = 4
"""Calls of a client that wait for their answer at any time."""


def resident(pid: int) -> int:
    """Bytes of physical memory."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("a process without memory")


def mixed(seed: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Calls without end: what is asked and stored comes again and again, as in a long life of few themes."""
    chance = random.Random(seed)
    asked, told = list(questions(SCENES, seed=11)), list(texts(SCENES, seed=12))
    number = 0
    while True:
        number += 1
        if number % PATROL_EACH == 0:
            yield "run_patrol", {}
            continue
        choices: list[tuple[str, Mapping[str, Any]]] = [
            ("recall", {"query": chance.choice(asked)}),
            ("store", {"text": chance.choice(told)}),
            ("search_memory", {"query": chance.choice(asked).split()[-1], "limit": 20}),
            ("recall_memory", {"limit": 10}),
            ("recall", {"query": chance.choice(asked), "format": "memories", "limit": 10}),
            ("recall", {"query": "", "limit": -1}),
        ]
        yield chance.choices(choices, weights=[40, 20, 20, 5, 10, 5])[0]


def converse(asker: Asker, seed: int, count: int, offset: int) -> None:
    calls = mixed(seed)
    for number in range(count):
        asker.wait_for(offset + number + 1 - IN_FLIGHT)
        tool, arguments = next(calls)
        asker.call(offset + number, tool, **arguments)
    asker.wait_for(offset + count)


def in_parallel(askers: list[Asker], count: int, *, seed: int, offset: int) -> None:
    with ThreadPoolExecutor(len(askers)) as pool:
        each = count // len(askers)
        for done in [pool.submit(converse, asker, seed + n, each, offset) for n, asker in enumerate(askers)]:
            done.result()


@pytest.mark.slow
def test_twenty_thousand_calls_of_four_clients_leave_the_host_as_small_as_it_was(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with no_host_left(data_dir):
        askers = [Asker(data_dir) for _ in range(CLIENTS)]
        try:
            in_parallel(askers, WARM_UP, seed=0, offset=0)
            [pid] = hosts_of(data_dir)
            before = resident(pid)
            in_parallel(askers, CALLS - WARM_UP, seed=100, offset=WARM_UP // CLIENTS)
            grown = resident(pid) - before
            print(f"{before / 2**20:.0f} MB after warm-up, {grown / 2**20:+.1f} MB after {CALLS - WARM_UP} calls more")
            assert hosts_of(data_dir) == [pid], "the same host all the time"
            for asker in askers:
                each = CALLS // CLIENTS
                answers = asker.wait_for(each)
                assert sorted(answer["id"] for answer in answers) == list(range(each))
                refused = sum(answer["result"].get("isError", False) for answer in answers)
                assert 0.03 < refused / each < 0.07, "one call in twenty is wrong"
            assert grown < MOST_GROWTH
        finally:
            for asker in askers:
                asker.process.kill()
                asker.close()
