"""After `forget` the raw bytes of every file in the data directory hold nothing of the memory (ruling 11), whatever
happened to it before, whatever goes on meanwhile, and wherever the process is killed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from madeleine.memory.chat import NewConversationMessage
from madeleine.memory.core_blocks.values import VersionedCoreBlockEdit
from madeleine.memory.errors import CannotUndo
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.notes import add_note
from madeleine.memory.ingest.update_and_forget import ForgetOutcome
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.language_model import Prompt
from madeleine.memory.model import MAX_SUPERSEDED_TEXT_CHARS, DatedAction, Memory, MemoryChanges, Scene, memory_date
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.observe import AgentExtractedMemory, ObservedConversationPart
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from tests.doubles import ADA, BOB, NOW
from tests.e2e.serving import ROOT, call_tool, command, connected, environment
from tests.household import ScriptedModel, shown_memories
from tests.remains import DenseWords, found_in
from tests.waiting import DEADLOCK_S

SECRET = NewScene(
    scene=Scene(
        action="Zoé buried the xylophoniser under the quincewood tree. "
        + "It was a long, quillwort-grey evening. " * 150,
        actors=("Zoé Brandauerin", "Käpt’n Vrobel"),
        when=(DatedAction("2026-02-01", "the spade was zwischenlagered"), "once in Nebelmonth"),
        setting='the garden of "Schloss Wurmwald"',
        dialogue=("Nobody digs for xylophonisers",),
        sensory=("a smell of wet marzipanstone",),
    ),
    feeling="I felt conspiratorially glad",
    lesson="Bury xylophonisers deeper, says ボクシ",
    themes=("xylophonisers", "secret-gardens"),
    session_id="session-qwandry",
    key="key-zzyzx",
)
WORDS = (
    "xylophoniser", "quincewood", "quillwort-grey", "buried the xylophoniser under", "Zoé Brandauerin", "Vrobel",
    "zwischenlagered", "Nebelmonth", "Schloss Wurmwald", '"Schloss', "digs for", "marzipanstone", "conspiratorially",
    "ボクシ", "secret-gardens", "session-qwandry", "key-zzyzx",
)  # fmt: skip
CORRECTED = "Zoé buried the xylophoniser near the quincewood tree, not under it: ask Jabberwockman"
MORE_WORDS = (*WORDS, "Jabberwockman", "near the quincewood")
FILLING = "lake bread violin winter letter garden mother train Kyoto music rain office contract budget deadline".split()


def filling(chance: random.Random, count: int) -> list[NewScene]:
    return [
        NewScene(
            scene=Scene(action=f"{' '.join(chance.choices(FILLING, k=chance.randrange(3, 60)))} {chance.random()}"),
            themes=tuple(chance.choices(FILLING, k=2)),
        )
        for _ in range(count)
    ]


async def lived(memory: OpenedMemoryStore, chance: random.Random) -> Memory:
    """The secret, stored, told again, recalled, patrolled and corrected, among others that come and move."""
    await memory.use_cases.store(ADA, filling(chance, 60))
    [stored] = await memory.use_cases.store(ADA, [SECRET])
    secret = stored.memory
    await memory.use_cases.store(ADA, filling(chance, 60))
    [again] = await memory.use_cases.store(ADA, [replace(SECRET, key="key-zzyzx-2")])
    assert (again.status, again.memory.id) == ("reinforced", secret.id)
    await memory.use_cases.patrol(ADA)
    await memory.use_cases.browse.by_ids(ADA, [secret.id])
    await memory.index_keeper.index_marked_memories()
    await memory.use_cases.update(
        ADA, secret.id, MemoryChanges(text=CORRECTED, themes=("xylophonisers", "secret-gardens"))
    )
    await memory.use_cases.store(ADA, filling(chance, 60))
    await memory.use_cases.patrol(ADA)
    relation = ("Zoé Brandauerin", "conspires with", "Käpt’n Vrobel")
    await memory.use_cases.graph.change_stated_relations(ADA, secret.id, [relation])
    assert (await memory.use_cases.graph.find_related(ADA, "Zoé Brandauerin")).entity is not None  # it is drawn
    return secret


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
async def test_nothing_of_a_forgotten_memory_is_in_any_file(tmp_path: Path, seed: int) -> None:
    embedder = DenseWords(dim=96)
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        secret = await lived(memory, random.Random(seed))
        rows = [embedder.vector(secret.embedded_text)]
        [now] = (await memory.use_cases.browse.by_ids(ADA, [secret.id])).memories
        rows.append(embedder.vector(now.embedded_text))
        assert set(found_in(tmp_path, MORE_WORDS, rows[1:])) == {*MORE_WORDS, "vector"}  # it finds what is there
        answer = await memory.use_cases.forget(ADA, [secret.id], wait=True)
        assert (answer.erased, answer.missing, answer.bytes_scrubbed) == ((secret.id,), (), True)
        assert found_in(tmp_path, MORE_WORDS, rows) == {}
        assert await memory.ledger.index_source.count_memories() == await memory.index.count() == 180
    assert found_in(tmp_path, MORE_WORDS, rows) == {}


async def test_what_nobody_waits_for_is_gone_from_the_files_when_the_memory_is_closed(tmp_path: Path) -> None:
    """ruling 25"""
    embedder = DenseWords(dim=96)
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        await memory.use_cases.store(ADA, filling(random.Random(3), 20))
        [stored] = await memory.use_cases.store(ADA, [SECRET])
        await memory.index_keeper.index_marked_memories()
        answer = await memory.use_cases.forget(ADA, [stored.memory.id])
        assert (answer.erased, answer.bytes_scrubbed) == ((stored.memory.id,), False)
    assert found_in(tmp_path, WORDS, [embedder.vector(stored.memory.embedded_text)]) == {}


async def test_nothing_of_an_erased_core_block_is_in_any_file(tmp_path: Path) -> None:
    """spec O12, ruling 25"""
    words = ("xylophoniser", "quincewood", "garden-block")
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=DenseWords(dim=96)) as memory:
        blocks = memory.use_cases.core_blocks
        await blocks.edit(ADA, VersionedCoreBlockEdit(name="garden-block", version=0, text="A xylophoniser is buried."))
        await blocks.edit(
            ADA, VersionedCoreBlockEdit(name="garden-block", version=1, text="Under the quincewood tree.")
        )
        assert set(found_in(tmp_path, words, [])) == set(words)
        await blocks.erase(ADA, "garden-block")
        assert await memory.use_cases.forget.scrubber.request_and_wait(within_seconds=30)
        assert found_in(tmp_path, words, []) == {}


async def test_the_acts_that_retired_it_are_gone_too(tmp_path: Path) -> None:
    """ruling 14: the reason of a retraction, the beginning of the text in what took its place, and the journal."""
    embedder = DenseWords(dim=96)
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        [stored] = await memory.use_cases.store(ADA, [SECRET])
        secret = stored.memory
        other = NewScene(scene=Scene(action="The violin hangs in the kitchen"), supersedes=secret.id)
        [successor] = await memory.use_cases.store(ADA, [other])
        assert successor.memory.before == f"{memory_date(secret)}: {secret.scene.action[:MAX_SUPERSEDED_TEXT_CHARS]}"
        await memory.use_cases.change_truth.retract(ADA, secret.id, "the Wolpertinger made it up")
        await memory.index_keeper.index_marked_memories()
        words = (*WORDS, "Wolpertinger")
        assert "Wolpertinger" in found_in(tmp_path, words, [])
        answer = await memory.use_cases.forget(ADA, [secret.id], wait=True)
        assert answer.bytes_scrubbed
        assert found_in(tmp_path, words, [embedder.vector(secret.embedded_text)]) == {}
        [left] = (await memory.use_cases.browse.by_ids(ADA, [successor.memory.id])).memories
        assert (left.before, left.truth) == ("", "current")


async def test_the_note_that_it_came_from_and_the_cluster_that_it_named_are_gone_too(tmp_path: Path) -> None:
    """spec P6 ❶"""
    embedder = DenseWords(dim=96)
    scene = {"action": "Zoé buried a xylophoniser", "actors": ["Zoé Brandauerin"], "themes": ["xylophonisers"]}
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        for number in range(3):
            noted = scene | {"action": f"Zoé buried a xylophoniser number {number}"}
            await add_note(memory.ledger.context, ADA, json.dumps(noted), now=NOW)
        await memory.use_cases.patrol(ADA)
        [named] = [one for one, _ in await memory.use_cases.browse.clusters_with_moods(ADA) if not one.is_root]
        assert named.name == "xylophonisers"
        inside = await memory.use_cases.browse.memories_of_cluster(ADA, named.id, limit=9)
        rows = [embedder.vector(one.embedded_text) for one in inside.memories]
        assert found_in(tmp_path, ["xylophonisers", "Brandauerin"], rows)
        answer = await memory.use_cases.forget(ADA, [one.id for one in inside.memories], wait=True)
        assert answer.bytes_scrubbed
        assert found_in(tmp_path, ["xylophoniser", "Brandauerin"], rows) == {}
        assert [one.name for one, _ in await memory.use_cases.browse.clusters_with_moods(ADA) if not one.is_root] == []


async def test_the_messages_that_it_was_drawn_from_are_gone_too(tmp_path: Path) -> None:
    """With the title of their session, and with a key and an index of their words. And messages that are forgotten by
    themselves."""
    words = ("xylophoniser", "quincewood", "Brandauerin", "zwischenlagered", "marzipanstone", "key-zzyzx")
    drawn = AgentExtractedMemory(
        ExtractedMemory("Zoé buried a xylophoniser", ("joy",), 0.7, "Bury xylophonisers deeper"), (0,)
    )
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=DenseWords(dim=96)) as memory:
        filler = [
            NewConversationMessage(role="assistant", text=scene.scene.action) for scene in filling(random.Random(1), 90)
        ]
        text = "I buried the xylophoniser under the quincewood. " + "It was a long evening. " * 400
        secret = NewConversationMessage(role="user", text=text, speaker="Zoé Brandauerin", key="key-zzyzx")
        more = NewConversationMessage(role="user", text="The spade was zwischenlagered by the marzipanstone")
        seen = ObservedConversationPart(
            session_id="s", messages=[secret, *filler[:40], more, *filler[40:]], memories=[drawn], title="xylophoniser"
        )
        observed = await memory.use_cases.observe(ADA, seen)
        await memory.use_cases.patrol(ADA)
        assert set(found_in(tmp_path, words)) == set(words)
        [stored] = observed.memories
        assert stored is not None
        answer = await memory.use_cases.forget(ADA, [stored.memory.id], wait=True)
        assert (answer.messages, answer.bytes_scrubbed) == (1, True)
        assert set(found_in(tmp_path, words)) == {"zwischenlagered", "marzipanstone"}
        answer = await memory.use_cases.forget(ADA, [observed.new_messages[41].id], wait=True)
        assert (answer.erased, answer.messages, answer.bytes_scrubbed) == ((observed.new_messages[41].id,), 1, True)
        assert found_in(tmp_path, words) == {}
        again = await memory.use_cases.observe(ADA, ObservedConversationPart(session_id="s", messages=[secret]))
        assert (again.new_messages, again.known_count) == ((), 1)
        assert (
            len(await memory.ledger.conversations.session_messages_between_positions(ADA, "s", start=0, end=99)) == 90
        )
    assert found_in(tmp_path, words) == {}


PLAIN = "The council met in the old hall and talked of bridges"


async def test_what_patrols_have_made_of_it_is_gone_too(tmp_path: Path) -> None:
    """A timeline that retold it, in the survivor of its survivor; the journal of all that, a diary entry, points
    for the next session, an offer, and the means of clusters."""
    embedder = DenseWords(dim=96)
    secret = "Zoé buried the xylophoniser under the quincewood tree near the shed"
    words = ("xylophoniser", "quincewood", "zwischenlagered", "Brandauerin")
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        use = memory.use_cases
        today = datetime.now(UTC).date().isoformat()
        scene = Scene(action=secret, actors=("Zoé Brandauerin",), when=(DatedAction(today, "it was zwischenlagered"),))
        buried = "Zoé buried the spade under the old tree near the shed"
        others = [NewScene(scene=Scene(action=f"{buried}, day {it}")) for it in ("alpha", "beta", "gamma", "delta")]
        stored = await use.store(ADA, [NewScene(scene=scene, importance=0.9)])
        kept = [one.memory for one in await use.store(ADA, [NewScene(scene=Scene(action=PLAIN))])]

        def merging(into: str) -> ScriptedModel:
            def consolidate(prompt: Prompt) -> Any:
                lines = shown_memories(prompt)
                numbers = {
                    part: n for n, line in enumerate(lines, start=1) for part in (into, absorbed) if part in line
                }
                found = len(numbers) == 2
                return {
                    "merges": [{"survivor": numbers[into], "absorbed": [numbers[absorbed]]}] if found else [],
                    "make_dead": [],
                    "keep": [],
                }

            absorbed = "quincewood" if into == "day alpha" else "day alpha"
            return ScriptedModel(consolidate=consolidate, diary=writing)

        def writing(prompt: Prompt) -> Any:
            told = "quincewood" in prompt.text  # of a memory, or of what was written earlier that day
            said = "I buried a xylophoniser under a quincewood." if told else "Nothing."
            return {"diary": f"{said}\nI slept.\nI rose.", "think_md": [said, "Two.", "Three."]}

        alone = await use.patrol(ADA, language=merging("day alpha"))
        await use.store(ADA, others)
        first = await use.patrol(ADA, language=merging("day alpha"))
        await use.store(ADA, [NewScene(scene=Scene(action=f"{buried}, day omega"))])
        second = await use.patrol(ADA, language=merging("day omega"), offer_pending=False)
        await use.store(ADA, [NewScene(scene=Scene(action=f"{buried}, day psi"))])
        last = await use.patrol(ADA)
        assert {offer.kind for offer in last.pending} >= {"consolidate", "diary"}
        [survivor] = [
            one
            for one in await memory.ledger.index_source.memories_after_id(after=None, limit=50)
            if one.scene.action.endswith("day omega")
        ]
        assert secret in [item.action for item in survivor.scene.when if isinstance(item, DatedAction)]
        rows = [embedder.vector(stored[0].memory.embedded_text)]
        assert set(found_in(tmp_path, words, rows)) == {*words, "vector"}
        told = await use.forget(ADA, [stored[0].memory.id], wait=True)
        assert (told.bytes_scrubbed, told.diary_entries) == (True, 1)
        assert found_in(tmp_path, words, rows) == {}
        for report in (last, second, first, alone):
            with suppress(CannotUndo):
                await use.patrol.undo_patrol(ADA, report.run_id)
        await memory.index_keeper.index_marked_memories()
        assert found_in(tmp_path, words, rows) == {}
        assert await memory.ledger.index_source.count_memories() == await memory.index.count() == 7
        [plain] = await memory.ledger.memories.memories_with_ids(ADA, [kept[0].id])
        assert plain.scene.action == PLAIN
    assert found_in(tmp_path, words, rows) == {}


async def test_what_another_memory_has_in_common_with_it_stays(tmp_path: Path) -> None:
    embedder = DenseWords(dim=96)
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        scene = Scene(action="Zoé buried a xylophoniser", actors=("Zoé Brandauerin",))
        [mine] = await memory.use_cases.store(ADA, [NewScene(scene=scene)])
        [theirs] = await memory.use_cases.store(BOB, [NewScene(scene=scene)])
        await memory.use_cases.forget(ADA, [mine.memory.id, theirs.memory.id], wait=True)
        row = embedder.vector(theirs.memory.embedded_text)
        assert found_in(tmp_path, ["Brandauerin"])
        assert found_in(tmp_path, vectors=[row])
        assert (await memory.use_cases.browse.by_ids(BOB, [theirs.memory.id])).memories == (theirs.memory,)
        await memory.use_cases.forget(BOB, [theirs.memory.id], wait=True)
        assert found_in(tmp_path, ["Brandauerin", "xylophoniser"], [row]) == {}


@pytest.mark.slow
async def test_while_others_store_recall_and_patrol_nothing_else_is_lost_and_nothing_comes_back(tmp_path: Path) -> None:
    chance = random.Random(7)
    embedder = DenseWords(dim=96)
    kept: list[Memory] = []
    secrets: list[Memory] = []
    busy = True
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=embedder) as memory:
        await memory.use_cases.patrol(ADA)

        async def store() -> None:
            while busy:
                kept.extend(one.memory for one in await memory.use_cases.store(ADA, filling(chance, 2)))

        async def look() -> None:
            while busy:
                await memory.use_cases.search(ADA, _anything())
                await memory.use_cases.browse.by_ids(ADA, [one.id for one in secrets])

        async def tend() -> None:
            while busy:
                await memory.use_cases.patrol(ADA)
                await memory.index_keeper.embed_memories_without_vector()

        async def forget(secret: Memory) -> ForgetOutcome:
            secrets.append(secret)
            return await memory.use_cases.forget(ADA, [secret.id], wait=True)

        async with asyncio.TaskGroup() as tasks:
            for work in (store, look, tend):
                tasks.create_task(work())
            for number in range(4):
                scene = Scene(
                    action=f"Zoé buried xylophoniser {number} at {number} o'clock", actors=("Zoé Brandauerin",)
                )
                stored = await memory.use_cases.store(ADA, [NewScene(scene=scene)])
                answer = await forget(stored[0].memory)
                assert answer.bytes_scrubbed
            busy = False
        rows = [embedder.vector(one.embedded_text) for one in secrets]
        await memory.use_cases.forget(ADA, [secrets[0].id], wait=True)
        assert found_in(tmp_path, ["xylophoniser", "Brandauerin"], rows) == {}
        await memory.index_keeper.index_marked_memories()
        assert len(kept) > 20
        assert len(await memory.ledger.memories.memories_with_ids(ADA, [one.id for one in kept])) == len(kept)
        assert await memory.index.count() == await memory.ledger.index_source.count_memories() == len(kept)
    assert found_in(tmp_path, ["xylophoniser", "Brandauerin"], rows) == {}


def _anything() -> KeywordQuery:
    return KeywordQuery(terms=("zoé", "garden"), limit=20)


# --- over stdio, and killed -------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_over_stdio_nothing_is_left_while_the_server_runs_and_after_it(tmp_path: Path) -> None:
    words = ("xylophoniser", "Brandauerin", "quincewood")
    async with connected(tmp_path) as client:
        for number in range(30):
            await call_tool(
                client, "store", text=f"Grandmother told story number {number} about the lake of {number * 7} swans"
            )
        text = "Zoé buried the xylophoniser under the quincewood tree"
        secret = await call_tool(client, "store", text=text, actors=["Zoé Brandauerin"], themes=["xylophonisers"])
        assert len((await call_tool(client, "recall", query="Where is the xylophoniser?")).get("sources", [])) == 1
        await call_tool(client, "run_patrol")
        assert found_in(tmp_path, words)
        answer = await call_tool(client, "forget", ids=[secret["id"], "nobody's"], wait=True)
        assert answer == {"erased": [secret["id"]], "missing": ["nobody's"]}
        assert found_in(tmp_path, words) == {}
        assert len((await call_tool(client, "recall", query="Where is the xylophoniser?")).get("sources", [])) == 0
        assert len((await call_tool(client, "recall", query="Which lake had swans in story 7?")).get("sources", [])) > 0
        assert await call_tool(client, "forget", ids=[secret["id"]], wait=True) == {
            "erased": [],
            "missing": [secret["id"]],
        }
    assert found_in(tmp_path, words) == {}


ROUNDS = 6
WHOLE_FORGET_S = 2.5
"""About how long one takes, process start and all left out: kills are spread over it."""


def killed_while_forgetting(data_dir: Path, memory_id: str, *, after_seconds: float) -> None:
    with subprocess.Popen(
        command(), env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout

        def send(message: dict[str, Any]) -> None:
            assert process.stdin
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
            process.stdin.flush()

        def call(tool: str, arguments: dict[str, Any]) -> None:
            send({"id": tool, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

        try:
            info = {"name": "killer", "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
            send({"id": "init", "method": "initialize", "params": params})
            process.stdout.readline()
            send({"method": "notifications/initialized"})
            call("recall_memory", {})  # answered when the memory is open
            process.stdout.readline()
            call("forget", {"ids": [memory_id], "wait": True})
            timer = threading.Timer(after_seconds, process.send_signal, [signal.SIGKILL])
            timer.start()
            process.stdout.read()
            assert process.wait(timeout=DEADLOCK_S) == -signal.SIGKILL
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()


@pytest.mark.slow
async def test_killed_in_the_middle_it_is_wholly_there_or_finished_at_the_next_start(tmp_path: Path) -> None:
    chance = random.Random(ROUNDS)
    async with connected(tmp_path) as client:
        kept = [
            (await call_tool(client, "store", text=f"Grandmother told story number {n} about {n * 7} swans"))["id"]
            for n in range(20)
        ]
        secret = await buried(client, 0)
    for round_ in range(ROUNDS):
        kill_after = (round_ + chance.random()) / ROUNDS * WHOLE_FORGET_S
        killed_while_forgetting(tmp_path, secret["id"], after_seconds=kill_after)
        async with connected(tmp_path) as client:
            left = (await call_tool(client, "recall_memory", ids=[secret["id"]]))["memories"]
            # Wholly there, or asking again waits for what is left of it.
            assert [memory["text"] for memory in left] in ([], [told_of(round_)])
            told = await call_tool(client, "forget", ids=[secret["id"]], wait=True)
            assert told == ({"erased": [secret["id"]]} if left else {"erased": [], "missing": [secret["id"]]})
            assert found_in(tmp_path, [f"xylophoniser{round_}x", f"vrobel{round_}x"]) == {}
            answer = await call_tool(client, "recall_memory", ids=kept)
            assert [memory["id"] for memory in answer["memories"]] == kept
            assert (
                len((await call_tool(client, "recall", query="Which story was about 35 swans?")).get("sources", [])) > 0
            )
            secret = await buried(client, round_ + 1)


def told_of(round_: int) -> str:
    return f"Zoé buried xylophoniser{round_}x near the lake"


async def buried(client: Client, round_: int) -> dict[str, Any]:
    return await call_tool(client, "store", text=told_of(round_), actors=[f"vrobel{round_}x"])
