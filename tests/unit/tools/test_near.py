"""What a recall says where no memory matches, by the tools alone (ruling 19), over the real ledger and index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, BOB, WordEmbedder
from tests.unit.tools.conftest import recalled

TOOLS = Toolset(make_all_tools(Random(1)), max_text_chars=32_000)
Use = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
async def use(tmp_path: Path) -> AsyncIterator[Use]:
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder(1024)) as memory:

        async def call(tool: str, *, scope: Any = ADA, **arguments: Any) -> dict[str, Any]:
            result = await TOOLS.call_tool(tool, arguments, ToolCallContext(scope, memory.use_cases))
            if result.is_error:
                raise RuntimeError(result.content[0].text)  # type: ignore[union-attr]
            return dict(result.structured_content or {})

        yield call


async def test_profile_messages_and_notes_are_near_where_no_memory_matches(use: Use) -> None:
    await use("store", text="Invoice 4711 settled")
    await use("profile", action="set", kind="relationships", name="Mireille", text="My sister, a luthier in Cremona")
    await use("profile", action="set", kind="partner_rules", name="Cremona", text="Never mention Mireille's move")
    await use("profile", action="disable", kind="partner_rules", name="Cremona")
    await use("profile", action="set", kind="notes", name="todo", text="Book the Zanzibar ferry")
    messages = [{"role": "user", "text": "The ferry to Zanzibar leaves from pier four"}]
    await use("observe", session_id="s", messages=messages)
    answer = await use("recall", query="Where does Mireille the luthier work?", format="memories")
    assert answer["memories"] == []
    assert [(item["source"], item["kind"], item["name"]) for item in answer["near"]] == [
        ("profile", "relationships", "Mireille")
    ]
    answer = await use("recall", query="When does the Zanzibar ferry leave?", limit=5)
    assert {item["source"] for item in answer["near"]} == {"chat", "notes"}
    assert "near" not in await use("recall", query="Which violin is Lucy tuning?")
    assert "near" not in await use("recall", query="When does the Zanzibar ferry leave?", themes=["travel"])
    assert "near" not in await use("recall", query="When does the Zanzibar ferry leave?", scope=BOB)


async def test_where_a_memory_matches_nothing_else_is_read(use: Use) -> None:
    await use("store", text="The Zanzibar ferry leaves at nine")
    await use("observe", session_id="s", messages=[{"role": "user", "text": "Is the Zanzibar ferry late?"}])
    answer = await use("recall", query="Zanzibar ferry", format="memories")
    assert [len(answer["memories"]), answer.get("near")] == [1, None]


async def test_names_and_numbers_are_shared_by_all_languages(use: Use) -> None:
    """A German question about English memories."""
    await use("store", text="Mireille signed contract 4711 with the harbour office")
    await use("store", text="The bakery opens at seven")
    answer = await use("recall", query="Wann hat Mireille den Vertrag 4711 unterschrieben?", format="memories")
    shown = [*answer["memories"], *answer.get("near", [])]
    assert [item["text"] for item in shown] == ["Mireille signed contract 4711 with the harbour office"]


async def test_a_search_by_subject_says_how_much_its_limit_hides(use: Use) -> None:
    for number in range(7):
        await use("store", text=f"The ferry number {number} was late", distinct=True)
    message = {"mode": "subject", "query": "Tell me about the ferry", "sources": ["memories"]}
    assert (await use("search_memory", **message, limit=3))["omitted"] == 4
    assert "omitted" not in await use("search_memory", **message, limit=7)


@pytest.mark.parametrize(
    "query",
    [
        "What did we learn about deployments?",
        "lessons learned",
        "Was haben wir über deployments gelernt?",
        "Qu'avons-nous appris des deployments ?",
    ],
)
async def test_a_question_for_lessons_finds_memories_that_have_one(use: Use, query: str) -> None:
    """Ruling 22: 3 of 10 were found, for no memory says that it is a lesson."""
    lesson = "Run the migrations before the switch"
    for text in ("Tom plays the violin on Sundays", "The bakery opens at seven", "Deployments happen on Tuesdays"):
        await use("store", text=text)
    await use("store", text="Friday's deployments had to be rolled back", lesson=lesson)
    answer = await use("recall", query=query, format="memories")
    assert answer["memories"][0]["lesson"] == lesson


async def test_a_day_in_a_question_is_one_thing_that_is_known(use: Use) -> None:
    """Its parts were three words, of which the index knows only the day as a whole."""
    for text, when in (
        ("The ingress was down", "2026-11-12"),
        ("Lunch with Tom", "2026-11-20"),
        ("A walk", "2025-05-11"),
    ):
        await use("store", text=text, when=when)
    answer = await use("recall", query="What happened on 2026-11-12?", format="memories")
    assert answer["memories"][0]["text"] == "The ingress was down"
    assert "unknown_words" not in answer


async def test_an_identifier_finds_what_holds_it_whatever_else_the_question_says(use: Use) -> None:
    """ "Which machine is 10.20.4.17?" was refused, for nothing has the word machine, and the look-alike came first."""
    production = "The production server bittern has the address 10.20.4.71"
    staging = "The staging server egret has the address 10.20.4.17"
    flight = "大阪行きの航空券の予約番号はQX7R2Mです"
    for text in (production, staging, flight, "The tram ticket costs 49 euros", "The harbour froze over"):
        await use("store", text=text)
    assert (await recalled(use, "Which machine is 10.20.4.17?"))[0] == staging
    assert (await recalled(use, "Which reservation is QX7R2M?"))[0] == flight
    assert await recalled(use, "Which machine is 10.20.4.18?") == []


async def test_a_name_that_no_memory_holds_is_named_beside_what_matches_all_the_same(use: Use) -> None:
    """ruling 19: what has a version matched a question for another one's, and nothing said so."""
    await use("store", text="RabbitMQ runs in version 3.13 on three nodes.")
    asked = await use("recall", query="In which version do we run Kubernetes?", format="memories")
    assert [memory["text"] for memory in asked["memories"]] == ["RabbitMQ runs in version 3.13 on three nodes."]
    assert asked["unknown_words"] == ["kubernetes"]
    answered = await use("recall", query="In which version do we run RabbitMQ these days?", format="memories")
    assert "unknown_words" not in answered
