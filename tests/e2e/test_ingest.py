"""Ingestion, from a real client and from the command to the disk and back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Lodger
from tests.e2e.hosting import madeleine, no_host_left
from tests.e2e.serving import COMMAND, ERAS, ROOT, Era, call_tool, connected, environment, tool_error
from tests.waiting import DEADLOCK_S

TRIP = (
    "Maria took the night train to Lisbon in May and forgot her blue umbrella there. She noticed it only when it "
    "rained on the way to the aquarium, and bought a new one from a man who sold them at the station for nine euros. "
    "The train back was late, and she read a whole novel about lighthouses on the platform."
)
TEA = (
    "I prefer green tea without sugar in the afternoon, and coffee before noon. I never drink either of them after "
    "dinner, because then I lie awake and count the bells of the church. When there are guests I make a whole pot, and "
    "whoever wants sugar has to bring some along, as there is none in the house and never was."
)


@pytest.mark.parametrize("era", ERAS)
async def test_a_text_is_ingested_recalled_and_known_the_second_time(lodger: Lodger, era: Era) -> None:
    async with lodger.connected(era=era) as client:
        ingested = await call_tool(
            client, "ingest", text=f"{TRIP}\n\n{TEA}", session_id="diary", key="k", when="2026-05-02"
        )
        again = await call_tool(
            client, "ingest", text=f"{TRIP}\n\n{TEA}", session_id="diary", key="k", when="2026-05-02"
        )
        recalled = await call_tool(
            client, "recall", query="Where did Maria forget the umbrella?", format="memories", limit=1, details=True
        )
        other = await tool_error(client, "ingest", {"text": TEA, "key": "k"})
    assert (ingested["stored"], ingested["reinforced"], ingested["dropped"]) == (2, 0, 0)
    trip, tea = ingested["chunks"]
    assert (trip["status"], trip["category"], tea["category"]) == ("stored", "episodic", "procedural")
    assert trip["begins"] == TRIP[:60].rstrip()
    assert trip["importance"] == pytest.approx(0.6 * trip["novelty"] + 0.4 * trip["salience"], abs=1e-3)
    assert "resembles" not in trip
    assert again == ingested | {"repeated": True}
    [memory] = recalled["memories"]
    assert (memory["id"], memory["when"]) == (trip["id"], "2026-05-02")
    assert memory["provenance"]["tool"] == "ingest"
    assert memory["provenance"]["session_id"] == "diary"
    assert "was used before for a different text" in other


async def test_what_was_forgotten_is_called_so_and_the_answer_says_what_to_do(lodger: Lodger) -> None:
    async with lodger.connected() as client:
        [chunk] = (await call_tool(client, "ingest", text=TRIP, key="k"))["chunks"]
        await call_tool(client, "forget", ids=[chunk["id"]])
        again = await call_tool(client, "ingest", text=TEA, key="k")
    assert (again["stored"], again["forgotten"], again["chunks"]) == (0, 1, [{"status": "forgotten"}])
    assert "use another key" in again["notice"]


async def test_ingest_is_listed_where_its_toolset_is_asked_for(lodger: Lodger) -> None:
    async with lodger.connected(more={"MADELEINE_TOOLSETS": "conversation"}) as client:
        assert "ingest" in [tool.name for tool in (await client.list_tools()).tools]
    async with lodger.connected() as client:
        assert "ingest" not in [tool.name for tool in (await client.list_tools()).tools]


async def test_bad_arguments_are_refused_and_nothing_is_stored(lodger: Lodger) -> None:
    bad: list[dict[str, object]] = [
        {}, {"text": " "}, {"text": "a", "category": "news"}, {"text": "a" * 32_001}, {"text": "a", "k": 1}
    ]  # fmt: skip
    async with lodger.connected() as client:
        for arguments in bad:
            assert (await tool_error(client, "ingest", arguments)).startswith("Nothing was done."), arguments


async def test_store_says_what_a_memory_resembles_and_recall_memory_shows_it(lodger: Lodger) -> None:
    """spec T6."""
    async with lodger.connected() as client:
        first = await call_tool(client, "store", text="We paid 40 euros for the old boat")
        second = await call_tool(client, "store", text="We paid 45 euros for the old boat")
        shown = await call_tool(client, "recall_memory", ids=[second["id"]])
    assert "resembles" not in first
    assert second["status"] == "stored"
    # Named once: as what may be superseded, where that is proposed.
    [named] = second.get("may_supersede") or [second["resembles"]]
    assert named == {"id": first["id"], "text": "We paid 40 euros for the old boat"}
    assert shown["memories"][0]["resembles"] == first["id"]


@pytest.mark.slow
async def test_the_command_ingests_files_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    text, chat = tmp_path / "notes.md", tmp_path / "chat.jsonl"
    text.write_text(f"# Notes\n\n{TRIP}\n\n{TEA}\n")
    chat.write_text(
        json.dumps({"speaker": "Bruno", "text": "I sold the red bicycle to Ines.", "ts": "2026-04-03"})
        + "\n"
        + json.dumps({"speaker": "Ines", "text": ""})
    )
    with no_host_left(data):
        first = madeleine(data, "ingest", str(text), str(chat), "--session", "import")
        second = madeleine(data, "ingest", str(text), str(chat), "--session", "import", "--json")
        async with connected(data, words=COMMAND) as client:
            recalled = await call_tool(
                client, "recall", query="Who sold the red bicycle?", format="memories", limit=1, details=True
            )
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines() == [f"{text}: 2 stored.", f"{chat}: 1 stored.", "  Lines without a text: 1."]
    assert "notes.md" in first.stderr
    assert json.loads(second.stdout) == [
        {"file": str(text), "parts": 1, "stored": 0, "reinforced": 0, "dropped": 0, "already": 2},
        {"file": str(chat), "parts": 1, "stored": 0, "reinforced": 0, "dropped": 0, "already": 1, "without_text": 1},
    ]
    [memory] = recalled["memories"]
    assert (memory["actors"], memory["when"]) == (["Bruno"], "2026-04-03")
    assert memory["provenance"]["client"] == "madeleine ingest"


def test_the_command_reads_standard_input_and_gives_all_of_it_one_category(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with no_host_left(data):
        found = subprocess.run(
            [*COMMAND, "ingest", "-", "--category", "social", "--json"],
            env=environment(data), cwd=ROOT, input=TRIP.encode(), capture_output=True, timeout=DEADLOCK_S, check=True,
        )  # fmt: skip
    [tally] = json.loads(found.stdout)
    assert (tally["file"], tally["stored"]) == ("standard input", 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.txt"], "nowhere.txt cannot be read: No such file or directory. Nothing was ingested."),
        (["."], "cannot be read: Is a directory"),
        (["Makefile", "--category", "news"], "--category: there is no 'news'. Known are working, episodic"),
        (["Makefile", "--session", ""], "--session: give 1 to 200 characters."),
    ],
)
def test_invalid_input_is_reported_before_a_host_is_started(tmp_path: Path, words: list[str], said: str) -> None:
    with no_host_left(tmp_path):
        completed = madeleine(tmp_path, "ingest", *words)
        assert completed.returncode == 2
        assert said in completed.stderr
        assert not (tmp_path / "memory.db").exists()


def test_who_may_only_read_is_told_so(tmp_path: Path) -> None:
    with no_host_left(tmp_path):
        completed = madeleine(tmp_path, "ingest", "Makefile", MADELEINE_READ_ONLY="true")
        assert completed.returncode != 0
        assert "Traceback" not in completed.stderr
        assert "madeleine: " in completed.stderr
