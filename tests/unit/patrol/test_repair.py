"""spec P6 ❶ 2: a scene note that could not be read is offered to be told anew, and is visible until then."""

from __future__ import annotations

import pytest

from madeleine.memory.model import Note, NoteId
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.rendering import decision_request_as_json_for_agent
from madeleine.patrol.deciding.requests import DecisionRequest
from tests.doubles import ADA
from tests.household import Household, ScriptedModel

BROKEN = '{"action": "Ann moved to Oslo on 3 May", "importance": </memory>'
TOLD = "Ann moved to Oslo on 3 May"


async def offered(home: Household) -> list[DecisionRequest]:
    report = await home.run_patrol()
    return [request for request in report.pending if request.kind == "repair"]


async def list_open_notes(home: Household) -> list[Note]:
    return await home.ledger.context.list_open_notes(ADA, limit=9)


async def leave(home: Household, content: str = BROKEN) -> NoteId:
    return (await home.note(content)).id


async def test_it_is_told_anew_by_the_agent_and_undone_by_one_call(home: Household) -> None:
    id_ = await leave(home)
    [request] = await offered(home)
    shown = decision_request_as_json_for_agent(request)
    assert "Ann moved to Oslo on 3 May" in shown["note"]
    assert "</memory>" not in shown["note"]
    assert shown["reason"].startswith("[PARSE_FAILED]")
    assert shown["when"] == home.clock().date().isoformat()
    assert "memories" not in shown

    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=request.id, text=TOLD)])
    assert dict(report.decided[0].counts) == {"notes_repaired": 1}
    [memory] = await home.all()
    assert (memory.scene.action, memory.provenance.tool, memory.fresh) == (TOLD, "notes", True)
    assert await list_open_notes(home) == []
    assert await offered(home) == []

    await home.undo(report.run_id)
    assert await home.all() == []
    assert [note.id for note in await list_open_notes(home)] == [id_]
    assert len(await offered(home)) == 1


async def test_one_that_tells_nothing_is_closed_by_the_offers_id_alone(home: Household) -> None:
    await leave(home)
    [request] = await offered(home)
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=request.id)])
    assert dict(report.decided[0].counts) == {"notes_closed": 1}
    assert (await home.all(), await list_open_notes(home), await offered(home)) == ([], [], [])


async def test_one_that_was_closed_meanwhile_becomes_no_memory(home: Household) -> None:
    id_ = await leave(home)
    [request] = await offered(home)
    assert await home.ledger.context.close_note(ADA, id_, at=home.clock())
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=request.id, text=TOLD)])
    assert "was closed or removed" in report.decided[0].refused
    assert await home.all() == []


async def test_a_model_tells_it_anew(home: Household) -> None:
    await leave(home)
    model = ScriptedModel(repair=lambda prompt: {"text": f" {TOLD} "})
    await home.run_patrol(model, steps=["assign", "repair"])
    assert [memory.scene.action for memory in await home.all()] == [TOLD]


@pytest.mark.parametrize("text", ["x" * 2_001, "half a \ud800 sign"])
async def test_a_text_that_cannot_be_stored_is_refused(home: Household, text: str) -> None:
    await leave(home)
    [request] = await offered(home)
    report = await home.patrol.apply_decisions_and_offer_more(
        ADA, [AgentDecision.model_construct(offer=request.id, text=text)]
    )
    assert report.decided[0].refused
    assert await home.all() == []


async def test_it_is_shown_among_the_open_notes_with_the_reason(home: Household) -> None:
    await leave(home, '{"action": ' + "x" * 9_000)
    await offered(home)
    [note] = await list_open_notes(home)
    assert note.shown_text.startswith("[PARSE_FAILED] not JSON")
    assert len(note.shown_text) < 500
