"""What is true now, by the tools alone (ruling 14), over the real ledger and index."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.open_memory import OpenedMemoryStore
from tests.doubles import ADA
from tests.unit.tools.conftest import Use, recalled

LYON, ROME, OSLO = "Maria lives in Lyon", "Maria has moved house to Rome", "Maria has her home in Oslo"
BEFORE = f"2026-03: {ROME}"
"""As `before` tells it: beside it stands the date of its successor."""


async def moved(use: Use) -> tuple[str, str, str]:
    """Three homes, one after the other, among other memories."""
    for text in ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven"):
        await use("store", text=text)
    lyon = (await use("store", text=LYON, when="2025-01", category="semantic"))["id"]
    rome = (await use("store", text=ROME, when="2026-03", supersedes=lyon, category="semantic"))["id"]
    oslo = (await use("update_memory", id=rome, text=OSLO, when="2026-06-15"))["id"]
    return lyon, rome, oslo


@pytest.mark.parametrize(
    ("tool", "old", "text", "besides"),
    [
        ("store", "Bob lives in Lyon and works at Acme.", "Bob lives in Paris.", "works at Acme"),
        ("store", "Bob lives in Lyon and works at Acme.", "Bob works at Globex now.", "Bob lives in Lyon"),
        ("update_memory", "Bo wohnt in Ulm, seine Katze heißt Mia.", "Bo wohnt in Jena.", "seine Katze heißt Mia"),
        (
            "store",
            "After the blood test Dr. Roe set Ann's dose to 75.",
            "Dr. Roe wrote 88 on Ann's new prescription.",
            "",
        ),
        ("update_memory", "Eva lives in Ulm and her boss is Ida.", "Eva lives in Ulm and her boss is Max Gru.", ""),
        ("store", "Ada, Ben and Tom sleep in Halle.", "Ada, Ben and Tom are back in Jena.", ""),
        ("store", "Kranich orders paper and toner from Rau.", "Toner and paper come from Officelux.", ""),
        (
            "store",
            "The office of Kranich is at Hansaring 8, second floor.",
            "Kranich works from Kai 21, third floor.",
            "",
        ),
        (
            "store",
            "Metrics are exposed on port 9100 by every service, Prometheus scrapes every 15 seconds.",
            "Prometheus scrapes only every 30 seconds now.",
            "Metrics are exposed on port 9100 by every service",
        ),
        (
            "store",
            "Jonas Kehrer (frontend, builds the customer portal): mobile 0170 5550142.",
            "Jonas Kehrer has a new mobile: 0151 5550377.",
            "frontend, builds the customer portal",
        ),
        ("store", "The shop opens at nine on Monday.", "The shop opens at ten on Monday and Tuesday.", ""),
        (
            "store",
            "Orders serves gRPC on port 7010 and its health check on 7011.",
            "The health check of orders is on port 7012.",
            "Orders serves gRPC on port 7010",
        ),
        (
            "store",
            "Backups of the main database go to an S3 bucket in Dublin at 01:00 and are held for 14 days.",
            "The backups of the main database are held for 35 days now.",
            "Backups of the main database go to an S3 bucket in Dublin at 01:00",
        ),
        (
            "store",
            "Dirk teaches on Tuesdays now, so he and Maren sit together on Thursdays at 14:00 instead.",
            "Dirk's Tuesday class is cancelled, so the one-on-one with Maren is back on Tuesdays at ten.",
            "",
        ),
        (
            "store",
            "Peter plays tennis at the club on Mondays. Rosa the cleaner comes with her own key on Fridays.",
            "Peter plays tennis at the club on Tuesdays now.",
            "Rosa the cleaner comes with her own key on Fridays",
        ),
        ("store", "The office opens at 9 and closes at 17.", "The office opens at 8 and closes at 16.", ""),
        (
            "store",
            "The nurses of Sonnenschein come three times a week, phone 07641 55821.",
            "The nurses come every day now.",
            "phone 07641 55821",
        ),
    ],
)
async def test_what_the_superseded_memory_said_besides_is_named(
    use: Use, tool: str, old: str, text: str, besides: str
) -> None:
    """It is no longer recalled."""
    before = (await use("store", text=old))["id"]
    named = {"supersedes": before} if tool == "store" else {"id": before, "when": str(utc_now().date())}
    answer = await use(tool, text=text, **named)
    assert answer.get("notice", "") == (
        f'{before} also said: "{besides}". If that still holds, store it by itself.' if besides else ""
    )


async def test_of_one_clause_that_tells_many_things_more_may_still_hold(use: Use) -> None:
    old = await use("store", text="The staging environment runs on a single Hetzner CX32 machine in Falkenstein.")
    new = "The staging machine was upgraded to a CX42 in the night."
    told = await use("store", text=new, supersedes=old["id"])
    assert told["notice"] == "m1 may have said more than this replaces: store by itself what of it still holds."
    assert "notice" not in await use("store", text="The staging machine is a CX52 now.", supersedes=told["id"])


@pytest.mark.parametrize("query", [LYON, ROME, OSLO])
async def test_any_version_brings_the_current_one_once_with_its_past(use: Use, query: str) -> None:
    _, _, oslo = await moved(use)
    [item] = (await use("recall", query=query, format="memories"))["memories"]
    assert (item["id"], item["text"]) == (oslo, OSLO)
    before = f"2025-01: {LYON}" if query == LYON else BEFORE  # the version that holds what is asked (ADR 103)
    assert (item["since"], item["before"]) == ("2026-06-15", before)
    block = (await use("recall", query=query, format="prompt"))["prompt"]
    assert f"[SEMANTIC] {OSLO} (since 2026-06-15; before: {before})" in block
    impression = await use("recall", query=query, format="fragments")
    assert impression["fragments"] == f"<recall>{OSLO}</recall>"
    assert [(one["since"], one["before"]) for one in impression["sources"]] == [("2026-06-15", before)]


@pytest.mark.parametrize(
    "arguments", [{"query": "Lyon"}, {"query": "Lyon Rome", "mode": "or"}, {"query": "LYON", "mode": "subject"}]
)
async def test_a_search_finds_the_current_version_by_the_words_of_an_earlier_one(
    use: Use, arguments: dict[str, Any]
) -> None:
    _, _, oslo = await moved(use)
    [hit] = (await use("search_memory", **arguments))["hits"]
    assert (hit["id"], hit["before"]) == (oslo, BEFORE)


@pytest.mark.parametrize(
    ("as_of", "text"),
    [
        ("2025-01-31", LYON),
        ("2026-02", LYON),
        ("2026-03-01", ROME),
        ("2026-06-14", ROME),
        ("2026-06", OSLO),
        ("2030", OSLO),
    ],
)
async def test_as_of_tells_what_was_true_then(use: Use, memory: OpenedMemoryStore, as_of: str, text: str) -> None:
    await moved(use)
    assert await recalled(use, "Where does Maria live, has moved house, home", as_of=as_of) == [text]
    hits = (await use("search_memory", query="Maria", as_of=as_of))["hits"]
    assert [hit["text"] for hit in hits] == [text]
    await memory.ledger.activations.flush()
    found = await memory.ledger.index_source.memories_after_id(after=None, limit=9)
    assert {one.reactivation_count for one in found} == {0}, "looking back wakes nothing (ruling 18)"


@pytest.mark.parametrize("query", ["Lyon", "Rome", "Oslo"])
async def test_as_of_a_past_day_a_search_finds_the_version_of_that_day_by_the_words_of_any(
    use: Use, query: str
) -> None:
    """ruling 14."""
    await moved(use)
    [hit] = (await use("search_memory", query=query, as_of="2026-05"))["hits"]
    assert hit["text"] == ROME


async def test_before_anything_was_told_nothing_is_known(use: Use) -> None:
    await moved(use)
    assert await recalled(use, LYON, as_of="2024-12-31") == []
    assert (await use("search_memory", query="Maria", as_of="2024"))["hits"] == []


async def test_a_plan_is_known_from_the_day_it_was_told(use: Use) -> None:
    """Issue 12: as of a day between the telling and the day of the plan it was missing."""
    yesterday, tomorrow, day = (str(utc_now().date() + timedelta(days=days)) for days in (-1, 1, 40))
    plan, change = f"The release is planned for {day}", "The release is put off until spring"
    old = (await use("store", text=plan, when=day))["id"]
    assert await recalled(use, plan, as_of=tomorrow) == await recalled(use, plan, as_of=day) == [plan]
    assert (await use("search_memory", query="release", as_of=tomorrow))["hits"][0]["text"] == plan
    assert await recalled(use, plan, as_of=yesterday) == []
    await use("store", text=change, supersedes=old)
    assert await recalled(use, plan, as_of=tomorrow) == [change]


async def test_a_date_alone_corrects_a_wrong_one_and_makes_no_version(use: Use) -> None:
    told = (await use("store", text=LYON, when="2025-01"))["id"]
    assert (await use("update_memory", id=told, when="2024-01"))["changed"] == ["when"]
    [shown] = (await use("recall_memory", ids=[told]))["memories"]
    assert (shown["when"], "versions" in shown, shown["history"][0]["when"]) == ("2024-01", False, ["2025-01"])
    assert await recalled(use, "Maria", until="2024-06") == [LYON]
    assert await recalled(use, "Maria", since="2024-06") == []
    await use("store", text=ROME, when="2026-03", supersedes=told)
    with pytest.raises(RuntimeError, match="undo that"):
        await use("update_memory", id=told, when="2023")
    timeline = (await use("store", text="Ada moved", when=[{"date": "2026-05", "action": "packed"}]))["id"]
    with pytest.raises(RuntimeError, match="timeline"):
        await use("update_memory", id=timeline, when="2023")


@pytest.mark.parametrize("tool", ["store", "update_memory"])
async def test_what_is_to_supersede_a_memory_is_a_plan_until_its_day(
    use: Use, memory: OpenedMemoryStore, tool: str
) -> None:
    old = (await use("store", text=LYON, when="2025-01", category="semantic"))["id"]
    named = {"supersedes": old} if tool == "store" else {"id": old}
    planned = await use(tool, text=ROME, when="2999-01", **named)
    assert "superseded" not in planned
    assert f"{old} stays true until then" in planned["notice"]
    question = "Maria"
    assert (await recalled(use, question))[0] == LYON
    assert (await use("recall_memory", ids=[old]))["memories"][0]["text"] == LYON
    assert "supersede" not in {offer["kind"] for offer in (await use("run_patrol"))["pending"]}
    later = datetime(2999, 2, 1, tzinfo=UTC)
    result = await replace(memory.use_cases.recall, now=lambda: later)(ADA, RecallQuery(text=question))
    assert result.memories[0][0].scene.action == ROME


async def test_a_memory_shows_all_its_versions(use: Use) -> None:
    lyon, rome, oslo = await moved(use)
    [shown] = (await use("recall_memory", ids=[rome]))["memories"]
    assert (shown["truth"], shown["superseded_by"], shown["before"]) == ("superseded", oslo, f"2025-01: {LYON}")
    assert [(one["id"], one["text"], one["truth"]) for one in shown["versions"]] == [
        (lyon, LYON, "superseded"),
        (rome, ROME, "superseded"),
        (oslo, OSLO, "current"),
    ]
    assert [one.get("valid_until", "")[:10] for one in shown["versions"]] == ["2026-03-01", "2026-06-15", ""]


async def test_what_was_wrong_is_recalled_no_more_and_what_it_replaced_is_true_again(use: Use) -> None:
    _, rome, oslo = await moved(use)
    answer = await use("update_memory", id=oslo, retracted="It was Nina who moved.")
    assert {one["id"]: one["truth"] for one in answer["versions"]} == {oslo: "retracted", rome: "current"}
    assert OSLO not in await recalled(use, OSLO)
    assert await recalled(use, LYON) == [ROME]
    [hit] = (await use("search_memory", query="Oslo"))["hits"]
    assert (hit["id"], hit["status"]) == (oslo, "retracted")
    [shown] = (await use("recall_memory", ids=[oslo]))["memories"]
    assert shown["retraction_reason"] == "It was Nina who moved."
    await use("update_memory", id=oslo, undo=True)
    assert await recalled(use, LYON) == [OSLO]


async def test_forgetting_the_last_version_says_which_one_counts_as_true_again(use: Use) -> None:
    """rulings 14 and 25"""
    _, rome, oslo = await moved(use)
    answer = await use("forget", ids=[oslo])
    assert answer["current_again"] == [{"id": rome, "text": ROME}]
    assert "retracted" in answer["notice"]


async def test_an_undone_store_leaves_both_and_an_undone_update_the_earlier_one(use: Use) -> None:
    lyon, rome, oslo = await moved(use)
    await use("update_memory", id=oslo, undo=True)
    assert OSLO not in await recalled(use, OSLO)
    assert await recalled(use, LYON) == [ROME]
    await use("update_memory", id=rome, undo=True)
    assert set(await recalled(use, "Maria")) == {LYON, ROME}
    with pytest.raises(RuntimeError, match="neither superseded nor retracted"):
        await use("update_memory", id=lyon, undo=True)


async def test_a_correction_is_taken_back_too(use: Use) -> None:
    """ruling 14: undo by one call. The text, its vector and its words are the earlier ones again."""
    id_ = (await use("store", text=ROME, importance=0.8))["id"]
    await use("update_memory", id=id_, text=OSLO, importance=0.2)
    assert await use("update_memory", id=id_, undo=True) == {"id": id_, "changed": ["text", "importance"]}
    [memory] = (await use("recall_memory", ids=[id_]))["memories"]
    assert (memory["text"], memory["importance"]) == (ROME, 0.8)
    assert await recalled(use, ROME) == [ROME]
    await use("update_memory", id=id_, undo=True)
    assert await recalled(use, OSLO) == [OSLO]


async def test_where_a_later_change_stands_on_it_undo_takes_back_nothing(use: Use) -> None:
    """ruling 14: of a memory that was corrected, too, the later change is undone first."""
    lyon = (await use("store", text=ROME, when="2026-01"))["id"]
    await use("update_memory", id=lyon, text=LYON)
    for text, when in ((ROME, "2026-02"), (OSLO, "2026-03")):
        current = (await use("search_memory", limit=1))["hits"][0]["id"]
        await use("update_memory", id=current, text=text, when=when)
    with pytest.raises(RuntimeError, match="undo that first"):
        await use("update_memory", id=lyon, undo=True)
    [memory] = (await use("recall_memory", ids=[lyon]))["memories"]
    assert memory["text"] == LYON


async def test_a_version_that_is_not_current_is_not_superseded_and_the_current_one_is_named(use: Use) -> None:
    lyon, _, oslo = await moved(use)
    with pytest.raises(RuntimeError, match=f"superseded by {oslo}.*{OSLO}.*supersede {oslo} instead"):
        await use("store", text="Maria lives in Bern", supersedes=lyon)
    assert (await use("search_memory", query="Bern"))["hits"] == [], "nothing was stored"
    with pytest.raises(RuntimeError, match="cannot have ended before"):
        await use("store", text="Maria lives in Bern", supersedes=oslo, when="2026-05")


async def test_an_act_may_come_with_the_second_telling_and_be_told_again(use: Use) -> None:
    """The answer to a store says: repeat it with supersedes."""
    old = (await use("store", text="The office door code is 4417"))["id"]
    told = {"text": "The office door code is 9031", "key": "code"}
    new = (await use("store", **told))["id"]
    acted = await use("store", **told, supersedes=old)
    assert (acted["id"], acted["superseded"]["id"]) == (new, old)
    assert acted["notice"] == f"{new} was stored before; now it supersedes {old}."
    assert await recalled(use, "What is the office door code?") == ["The office door code is 9031"]
    for again in (told, {"text": told["text"]}):
        assert (await use("store", **again, supersedes=old))["id"] == new
    versions = (await use("recall_memory", ids=[new]))["memories"][0]["versions"]
    assert [one["id"] for one in versions] == [old, new]


async def test_of_two_clients_that_supersede_one_memory_at_once_one_is_told(use: Use) -> None:
    lyon = (await use("store", text=LYON))["id"]
    stores = [use("store", text=f"Maria lives in {city}", supersedes=lyon) for city in ("Rome", "Oslo", "Bern")]
    ends = await asyncio.gather(*stores, return_exceptions=True)
    assert sorted(isinstance(end, RuntimeError) for end in ends) == [False, True, True]
    assert len(await recalled(use, LYON)) == 1


async def test_what_was_true_before_is_stored_anew_when_it_is_true_again(use: Use) -> None:
    """It was reinforced where it was superseded, and never recalled again."""
    lyon = (await use("store", text=LYON))["id"]
    await use("store", text=ROME, supersedes=lyon)
    answer = await use("store", text=LYON)
    assert answer["status"] == "stored"
    assert set(await recalled(use, "Maria lives in house")) == {LYON, ROME}


async def test_nothing_but_an_act_retires_a_memory(use: Use, memory: OpenedMemoryStore) -> None:
    """ruling 14: storing, correcting, recalling and patrols never do, whatever the texts say."""
    stored = [
        (await use("store", text=f"Maria lives in {city}", when=f"2026-0{month}", session_id="one"))["id"]
        for month, city in enumerate(("Lyon", "Rome", "Oslo"), start=1)
    ]
    await use("store", text="Maria no longer lives in Lyon, she has moved to Oslo instead")
    await use("update_memory", id=stored[0], text="Maria lives in Lille")
    await recalled(use, "Maria lives")
    for _ in range(3):
        await use("run_patrol")
    everything = await memory.ledger.index_source.memories_after_id(after=None, limit=99)
    assert {one.truth for one in everything} == {"current"}
    assert {(one.valid_from, one.valid_until, one.superseded_by) for one in everything} == {(None, None, None)}


async def test_the_index_follows_the_ledger_after_it_was_away(
    use: Use, memory: OpenedMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between the commit and the index; and a rebuilt index says the same."""
    lyon = (await use("store", text=LYON))["id"]

    async def away(points: object) -> None:
        raise IndexUnavailable("the process was killed")

    with monkeypatch.context() as patched:
        patched.setattr(memory.index, "upsert", away)
        await use("store", text=ROME, supersedes=lyon)
        assert LYON not in await recalled(use, LYON), "the ledger knows better"
    await memory.index_keeper.index_marked_memories()
    assert await recalled(use, LYON) == [ROME]
    await memory.index.delete(
        [one.id for one in await memory.ledger.index_source.memories_after_id(after=None, limit=9)]
    )
    await memory.index_keeper.rebuild()
    assert await recalled(use, LYON) == [ROME]


async def test_what_is_not_true_is_in_no_diary_and_no_summary_and_shapes_no_cluster(
    use: Use, memory: OpenedMemoryStore
) -> None:
    """ruling 14; spec P3, P8, L3."""
    old = (await use("store", text=LYON, session_id="one"))["id"]
    wrong = (await use("store", text="Maria has a parrot", session_id="one"))["id"]
    await use("store", text="Maria paints boats", session_id="one")
    new = (await use("store", text=ROME, supersedes=old, session_id="one"))["id"]
    await use("run_patrol")
    before = await _cluster_vectors(memory)
    await use("update_memory", id=wrong, retracted="It was a cockatoo.")
    reads = memory.ledger.patrols.memory_reader_for_patrol(ADA)
    assert [one.scene.action for one in await reads.summarisable_session_memories("one")] == ["Maria paints boats"]
    assert [session.memories for session in await reads.unsummarised_sessions()] == [1]
    assert [one.short_id for one in await reads.memories_stored_since(None, limit=9)] == ["m3", new]
    after = await _cluster_vectors(memory)
    assert after != before, "the mean is that of the others at once"
    await use("update_memory", id=wrong, undo=True)
    assert await _cluster_vectors(memory) == before
    shown = (await use("context", blocks=["recent_nodes", "memories"], message="Maria lives in Lyon"))["memories"]
    assert [one["text"] for one in shown if old == one["id"]] == []


async def _cluster_vectors(memory: OpenedMemoryStore) -> dict[str, list[float]]:
    clusters = await memory.ledger.patrols.memory_reader_for_patrol(ADA).clusters()
    return {one.id: [] if one.vector is None else one.vector.round(5).tolist() for one in clusters}


async def test_a_superseded_preference_is_no_preference_any_more(use: Use) -> None:
    old = (await use("store", text="Always answer Maria in French", category="procedural"))["id"]
    await use("store", text="Always answer Maria in Italian", category="procedural", supersedes=old)
    answer = await use("recall", query="How to answer Maria", format="memories")
    assert [one["text"] for one in answer["preferences"]] == ["Always answer Maria in Italian"]
    prompt = (await use("context", blocks=["system_prompt"]))["prompt"]
    assert "French" not in prompt
    assert "Italian" in prompt


async def test_without_a_change_no_read_is_added_and_with_one_a_single_one(
    use: Use, memory: OpenedMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    rows = memory.ledger.database.rows
    in_this_task = ContextVar("in_this_task", default=False)  # the upkeep of the index reads beside it

    async def counted(*arguments: Any, **binds: Any) -> list[Any]:
        nonlocal reads
        reads += in_this_task.get()
        return await rows(*arguments, **binds)

    lyon = (await use("store", text=LYON))["id"]
    await recalled(use, LYON)
    monkeypatch.setattr(memory.ledger.database, "rows", counted)
    in_this_task.set(True)
    await recalled(use, LYON)
    before, reads = reads, 0
    await use("store", text=ROME, supersedes=lyon)
    reads = 0
    await recalled(use, LYON)
    assert reads <= before + 1


@pytest.mark.parametrize("when", ["", "2026-02-01"])
async def test_the_advice_is_followed_late_when_the_memory_is_superseded_itself(use: Use, when: str) -> None:
    """What was advised at its store made a third memory that was true again."""
    dated = {"when": when} if when else {}
    first = (await use("store", text="The studio's courier is Chronopost.", when="2026-01-01"))["id"]
    told = {"text": "The studio's courier is DHL now.", **dated}
    second = await use("store", **told)
    assert second["may_supersede"][0]["id"] == first
    third = await use("store", text="The studio switched its courier from DHL to CTT.", supersedes=second["id"])
    answer = await use("store", **told, supersedes=first)
    assert (answer["id"], answer["superseded"]["id"]) == (second["id"], first)
    [memory] = (await use("recall_memory", ids=[third["id"]]))["memories"]
    assert [one["id"] for one in memory["versions"]] == [first, second["id"], third["id"]]
    assert len((await use("search_memory", query="courier"))["hits"]) == 1
    again = await use("store", text="The studio's courier is DHL now.", supersedes=third["id"])
    assert again["id"] not in (second["id"], third["id"]), "true again"


async def test_as_of_a_day_what_was_told_last_until_then_comes_first_undecided(use: Use) -> None:
    """ruling 24: as of yesterday it was the older one, and as of now the later one."""
    for text in ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven"):
        await use("store", text=text)
    older, newer = "Our contact at Lumina is Hugo Dias.", "Rita Paz is our contact at Lumina now."
    await use("store", text=older, when="2026-01-10")
    await use("store", text=newer, when="2026-02-20")
    question = "Who was our contact at Lumina?"
    assert await recalled(use, question, as_of="2026-01-20", limit=1) == [older]
    assert await recalled(use, question, as_of="2026-02-25", limit=1) == [newer]


async def test_of_notes_of_two_sessions_the_later_one_comes_first_undecided(use: Use) -> None:
    """ruling 24: an agent stores with the session it is in, and its notes are no turns of a conversation."""
    for text in ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven"):
        await use("store", text=text, session_id="s1")
    older, newer = "Our contact at Lumina is Hugo Dias.", "Rita Paz is our contact at Lumina now."
    await use("store", text=older, session_id="s1")
    await use("store", text=newer, session_id="s2")
    assert await recalled(use, "Who is our contact at Lumina?", limit=1) == [newer]


async def test_an_old_value_that_is_told_with_a_later_date_is_true_again(use: Use) -> None:
    """It was taken for the first telling, and put into the past."""
    admission = (await use("store", text="The admission is seven euros.", when="2020-01"))["id"]
    nine = "The ticket costs 9 euros."
    first = (await use("store", text=nine, when="2021-01"))["id"]
    eleven = await use("store", text="The ticket costs 11 euros.", when="2023-01", supersedes=first)
    again = await use("store", text=nine, when="2026-01", supersedes=admission)
    assert again["id"] not in (first, eleven["id"])
    assert again["superseded"]["id"] == admission


async def test_what_is_told_with_the_first_telling_is_kept_and_what_is_true_now_named(use: Use) -> None:
    for text in ("The harbour froze over", "The bakery opens at seven"):
        await use("store", text=text)
    first = (await use("store", text="The studio's courier is Chronopost."))["id"]
    told = {"text": "The studio's courier is DHL now."}
    second = await use("store", **told)
    third = await use("store", text="The studio switched its courier from DHL to CTT.", supersedes=second["id"])
    answer = await use("store", **told, supersedes=first, key="k1", lesson="Compare the couriers each year.")
    assert f"{third['id']} is true instead" in answer["notice"]
    [memory] = (await use("recall_memory", ids=[second["id"]]))["memories"]
    assert memory["lesson"] == "Compare the couriers each year."
    assert (await use("store", **told, supersedes=first, key="k1"))["id"] == second["id"]
    with pytest.raises(RuntimeError, match="k1"):
        await use("store", text="The dog is brown.", key="k1")


async def test_a_version_before_the_superseded_one_that_nobody_decided_about_is_named(use: Use) -> None:
    """Of three codes the agent superseded the second by the third, and the first stayed current without a word."""
    for text in ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven"):
        await use("store", text=text)
    first = (await use("store", text="The stage door code is 2580."))["id"]
    second = await use("store", text="The stage door code is 7713 now.")
    assert [one["id"] for one in second["may_supersede"]] == [first]
    third = "The stage door code is 6094 now."
    answer = await use("store", text=third, supersedes=second["id"])
    assert f"{first}, which {second['id']} may have superseded, is still current: 'The stage door" in answer["notice"]
    again = await use("store", text=third, supersedes=first)
    assert (again["id"], again["superseded"]["id"]) == (answer["id"], first)
    assert "still current" not in again["notice"]
    codes = [text for text in await recalled(use, "What is the stage door code?") if "code" in text]
    assert codes == [third]


async def test_before_tells_the_version_that_is_asked_for(use: Use) -> None:
    """Of three versions the first could not be told, though it was found by its own words."""
    first = "The budget of the villa is 640 thousand, granted by Hartwell."
    later = "The budget of the villa was cut to 585 thousand.", "The budget of the villa is 610 thousand after all."
    told = await use("store", text=first, when="2026-05-02")
    for text, month in zip(later, ("07", "09"), strict=True):
        told = await use("store", text=text, when=f"2026-{month}-02", supersedes=told["id"])
    for question, before in (
        ("What is the budget of the villa?", f"2026-07-02: {later[0]}"),
        ("What was the original budget of the villa?", f"2026-05-02: {first}"),
        ("What did Hartwell grant for the villa?", f"2026-05-02: {first}"),
    ):
        [found] = (await use("recall", query=question, format="memories"))["memories"]
        assert [found["text"], found["before"]] == [later[1], before]


async def test_before_tells_the_last_version_of_a_name_of_several_parts(use: Use) -> None:
    """Its parts are words of the index, and the name one word of a statement: the first version was told of three."""
    told = await use("store", text="max_open_conns is 25.", when="2026-05-20")
    for value, month in (("60", "06"), ("40", "07")):
        text = f"max_open_conns is {value}."
        told = await use("store", text=text, when=f"2026-{month}-20", supersedes=told["id"])
    for question in ("max_open_conns", "What was max_open_conns before?", "What was max_open_conns before it was 40?"):
        [found] = (await use("recall", query=question, format="memories"))["memories"]
        assert [found["text"], found["before"]] == ["max_open_conns is 40.", "2026-06-20: max_open_conns is 60."]


@pytest.mark.parametrize("is_decided", [False, True])
async def test_a_newer_code_of_something_else_is_not_put_first(use: Use, *, is_decided: bool) -> None:
    """Ruling 14: whoever asked for the code of the safe got that of the gate, which was newer."""
    for text in ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven"):
        await use("store", text=text)
    gate = (await use("store", text="The code of the gate is 5519", when="2026-02-01"))["id"]
    safe, changed = "The code of the safe is 2084", "The code of the gate was changed to 7731"
    await use("store", text=safe, when="2026-03-01")
    decided = {"supersedes": gate} if is_decided else {}
    answer = await use("store", text=changed, when="2026-06-01", **decided)
    assert "safe" not in str(answer.get("may_supersede", ""))
    assert (await recalled(use, "What is the code of the safe?"))[0] == safe
    assert (await recalled(use, "What is the code of the gate?"))[0] == changed
