"""One host, many clients: whatever happens to the host, each request is answered, and done once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from pathlib import Path

import pytest

from tests.e2e.hosting import Asker, asking, hosted, hosts_of, kill, status, texts_of
from tests.e2e.serving import ERAS, Era, call_tool
from tests.waiting import DEADLOCK_S

KINDS = ("unix", "tcp")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "era"), zip(KINDS, ERAS, strict=True))
async def test_a_client_goes_on_with_the_next_host_when_its_own_is_killed(data_dir: Path, kind: str, era: Era) -> None:
    more = {"MADELEINE_ATTACH": kind}
    async with hosted(data_dir, era=era, more=more) as client:
        stored = await call_tool(client, "store", text="Ada hid the violin in the attic")
        first = status(data_dir)["pid"]
        assert hosts_of(data_dir) == [first]
        kill(first)
        answer = await call_tool(client, "recall", query="Where is the violin?", format="memories")
        assert [memory["id"] for memory in answer["memories"]] == [stored["id"]]
        assert (await client.list_tools()).tools
        assert hosts_of(data_dir) == [status(data_dir)["pid"]] != [first]


async def test_clients_that_start_at_once_share_one_host_and_one_memory(data_dir: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        for n in range(5):
            tasks.create_task(store_one(data_dir, f"Number {n} painted the garden gate", being="ada"))
    assert len(hosts_of(data_dir)) == 1
    assert await texts_of(data_dir, "painted") == {f"Number {n} painted the garden gate": 1 for n in range(5)}


async def store_one(data_dir: Path, text: str, *, being: str) -> None:
    async with hosted(data_dir, being=being) as client:
        await call_tool(client, "store", text=text)


@pytest.mark.slow
async def test_each_client_has_the_memory_of_its_own_being(data_dir: Path) -> None:
    async with hosted(data_dir, being="ada") as ada, hosted(data_dir, being="bert") as bert:
        await call_tool(ada, "store", text="The key lies under the blue flower pot")
        assert len((await call_tool(bert, "recall", query="Where does the key lie?")).get("sources", [])) == 0
        assert len((await call_tool(ada, "recall", query="Where does the key lie?")).get("sources", [])) == 1
        assert sorted(client["being"] for client in status(data_dir)["clients"]) == ["ada", "bert"]


async def store_from_many(data_dir: Path, *, clients: int, each: int, kills: int) -> None:
    """All store at once, as fast as they can, while the host is killed again and again."""
    chance = random.Random(clients)
    askers = [Asker(data_dir) for _ in range(clients)]
    try:
        writers = [
            threading.Thread(target=write_all, args=(asker, number, each)) for number, asker in enumerate(askers)
        ]
        for writer in writers:
            writer.start()
        for n in range(kills):
            # Somewhere in the middle of the work: when so much of it is answered.
            wanted = max(1, each * (n + 1) // (kills + 1) + chance.randrange(-each // 20 - 1, each // 20 + 1))
            askers[chance.randrange(clients)].wait_for(wanted, seconds=1200)
            for pid in hosts_of(data_dir):
                kill(pid)
        for asker, writer in zip(askers, writers, strict=True):
            answers = asker.wait_for(each, seconds=1800)
            writer.join(timeout=DEADLOCK_S)
            assert sorted(answer["id"] for answer in answers) == list(range(each))
            assert [answer for answer in answers if "error" in answer or answer["result"].get("isError")] == []
            assert {answer["result"]["structuredContent"]["status"] for answer in answers} == {"stored"}
    finally:
        for asker in askers:
            asker.process.kill()
            asker.close()
    expected = {text_of(client, number): 1 for client in range(clients) for number in range(each)}
    assert await texts_of(data_dir, "pocket") == expected
    [pid] = hosts_of(data_dir)
    assert "locked" not in (data_dir / "madeleine.log").read_text(encoding="utf-8"), pid


def text_of(client: int, number: int) -> str:
    return f"Client {client} put coin {number} into pocket {client * 100_000 + number}"


def write_all(asker: Asker, client: int, each: int) -> None:
    for number in range(each):
        asker.store(number, text_of(client, number))


async def test_stores_of_several_clients_are_each_done_once_while_the_host_is_killed(data_dir: Path) -> None:
    await store_from_many(data_dir, clients=3, each=40, kills=1)


@pytest.mark.slow
async def test_eight_clients_store_many_each_while_the_host_is_killed_five_times(data_dir: Path) -> None:
    await store_from_many(data_dir, clients=8, each=120, kills=5)


@pytest.mark.slow
async def test_what_must_not_be_repeated_is_answered_with_what_to_do(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(1, "The ladder stands behind the barn")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        os.kill(pid, signal.SIGSTOP)  # so that it is in flight when the host dies
        asker.call(2, "run_patrol")
        asker.call(3, "recall", query="Where is the ladder?")
        asker.store(4, "The kettle stands on the stove")
        kill(pid)
        by_id = {answer["id"]: answer for answer in asker.wait_for(4)}
        patrol = by_id[2]["result"]
        assert patrol["isError"]
        assert "Call again" in patrol["content"][0]["text"]
        assert len(by_id[3]["result"]["structuredContent"]["sources"]) == 1
        assert by_id[4]["result"]["structuredContent"]["status"] == "stored"
        assert asker.close() == 0


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 5])
async def test_a_store_that_was_committed_but_not_answered_is_not_done_twice(data_dir: Path, kills: int) -> None:
    """The host is killed some time after it has begun with four: committed or not, each is there once."""
    count = 4 * kills
    with asking(data_dir) as asker:
        for number in range(count):
            asker.store(number, f"In drawer {number} there is a compass")
            if number % 4 == 3:
                asker.wait_for(number - 1)
                for pid in hosts_of(data_dir):
                    kill(pid)
        answers = asker.wait_for(count)
        assert {answer["result"]["structuredContent"]["status"] for answer in answers} == {"stored"}
    assert await texts_of(data_dir, "compass") == {f"In drawer {n} there is a compass": 1 for n in range(count)}


async def test_a_client_that_uses_an_id_twice_loses_nothing(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        for number in range(3):
            asker.call(1, "store", text=f"On shelf {number} there is a teapot")
            asker.wait_for(number + 1)
    assert sum((await texts_of(data_dir, "teapot")).values()) == 3


@pytest.mark.slow
async def test_sigterm_finishes_what_was_begun_and_the_next_request_finds_a_new_host(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(0, "The first candle is red")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        for number in range(1, 20):
            asker.store(number, f"Candle number {number} is white")
        os.kill(pid, signal.SIGTERM)
        answers = asker.wait_for(20)
        assert sorted(answer["id"] for answer in answers) == list(range(20))
        assert {answer["result"]["structuredContent"]["status"] for answer in answers} == {"stored"}
        asker.call(20, "recall", query="Which candle is red?")
        assert len(asker.wait_for(21)[-1]["result"]["structuredContent"]["sources"]) >= 1
    assert sum((await texts_of(data_dir, "candle")).values()) == 20


@pytest.mark.slow
def test_more_than_a_host_can_finish_is_finished_by_the_next(data_dir: Path) -> None:
    """No host takes longer than ten seconds to end; what it has not answered is not lost for that."""
    count = 900
    with asking(data_dir) as asker:
        for number in range(count):
            asker.store(number, f"Tile {number} is blue, says row {number * 7}")
        asker.wait_for(10)
        for pid in hosts_of(data_dir):
            os.kill(pid, signal.SIGTERM)
        answers = asker.wait_for(count)
        assert [answer for answer in answers if "error" in answer or answer["result"].get("isError")] == []
        assert sorted(answer["id"] for answer in answers) == list(range(count))
