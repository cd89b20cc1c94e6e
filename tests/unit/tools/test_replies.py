"""Answers: no null, no traceback, nothing that cannot be sent."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.audit import AuditEntry, RecordAuditEvent
from madeleine.memory.errors import InvalidInput, StorageFull
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import DatedAction, EmotionVector, Memory, Provenance, memory_date
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.search import BrowsedMemories
from madeleine.memory.short_ids import ShortIdLedger, ShortIdTranslator
from madeleine.memory.text.structure import escape_foreign_markup_in_json
from madeleine.server.mcp.lines import encode_json_rpc_message_line
from madeleine.tools.arguments import ToolArguments
from madeleine.tools.reading import (
    RecallFormat,
    make_recall_tool,
    memory_page_as_json,
    read_whole_memories,
    recall_details_as_json,
    recall_result_as_json,
)
from madeleine.tools.replies import (
    brief_memory_as_json,
    datetime_as_iso,
    detailed_memory_as_json,
    search_hit_as_json,
    tool_result_of_content,
    tool_result_of_crash,
    tool_result_of_error,
    without_empty_fields,
    words_only_notice,
)
from madeleine.tools.tool import Tool, ToolCallContext, ToolUseCases
from madeleine.tools.toolset import Toolset
from tests.doubles import ADA, NOW, Clock, a_memory
from tests.rows import for_each_row

SPARSE = a_memory("We ate.")
FULL = a_memory(
    "We ate.",
    when=("2026-02-27", DatedAction("2026-02-28", "leftovers")),
    actors=("Ada",),
    setting="kitchen",
    dialogue=("More?",),
    sensory=("steam",),
    feeling="warm",
    lesson="cook more",
    themes=("food",),
    emotions=("joy",),
    emotion=EmotionVector(1, 0, 0, 0, 0, 0),
    pinned=True,
    provenance=Provenance(tool="store", client="inspector", session_id="s1"),
)


class FakeAuditLog:
    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def add_audit_entry(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


AUDIT = FakeAuditLog()
ONLY_AUDIT = cast(
    "ToolUseCases",
    SimpleNamespace(audit=RecordAuditEvent(AUDIT, now=Clock()), short_ids=ShortIdTranslator(cast(ShortIdLedger, None))),
)


def text_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def over_the_wire(result: types.CallToolResult) -> dict[str, Any]:
    """As a client reads it."""
    dumped = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    line = encode_json_rpc_message_line(types.JSONRPCResponse(jsonrpc="2.0", id=1, result=dumped))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    content: dict[str, Any] = json.loads(line)["result"]
    return content


def holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(holds_null, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(holds_null, value))
    return value is None


@pytest.mark.parametrize("memory", [SPARSE, FULL], ids=["sparse", "full"])
def test_no_null_is_sent_of_a_memory(memory: Memory) -> None:
    assert not holds_null(brief_memory_as_json(memory, 0.5))
    assert not holds_null(detailed_memory_as_json(memory, {}))


def test_a_whole_memory_tells_everything_that_is_known_of_it() -> None:
    """spec P10"""
    assert detailed_memory_as_json(FULL, {}) == {
        "id": FULL.id,
        "text": "We ate.",
        "status": "active",
        "truth": "current",
        "category": "episodic",
        "importance": 0.5,
        "when": "2026-02-27",
        "timeline": ["2026-02-27", {"date": "2026-02-28", "action": "leftovers"}],
        "actors": ["Ada"],
        "setting": "kitchen",
        "dialogue": ["More?"],
        "sensory": ["steam"],
        "feeling": "warm",
        "emotions": ["joy"],
        "emotion_vector": {"valence": 1, "arousal": 0, "dominance": 0, "safety": 0, "novelty": 0, "trust": 0},
        "lesson": "cook more",
        "themes": ["food"],
        "provenance": {
            "stored_at": "2026-03-01T12:00:00+00:00", "tool": "store", "client": "inspector", "session_id": "s1",
            "full_id": FULL.id,
        },
        "pinned": True,
        "session_count": 0,
        "access_count": 0,
        "reactivation_count": 0,
    }  # fmt: skip


def test_a_dead_memory_is_shown_whole_as_well() -> None:
    """Its status is among the marks of every answer, and a field; the two once collided."""
    dead = replace(FULL, status="dead", absorbed_into=SPARSE.id)
    shown = detailed_memory_as_json(dead, {SPARSE.id: "m7"})
    assert (shown["status"], shown["absorbed_into"], shown["lesson"]) == ("dead", "m7", "cook more")


def test_an_importance_of_zero_is_told() -> None:
    """Zero is a value, not a gap."""
    assert detailed_memory_as_json(a_memory("noise", importance=0.0), {})["importance"] == 0.0
    assert without_empty_fields(a=0, b=False, c=None, d="", e=[], f=(), g={}) == {"a": 0, "b": False}


def test_a_brief_memory_says_when_it_was_even_if_nobody_told() -> None:
    assert brief_memory_as_json(SPARSE, 0.5)["when"] == "2026-03-01"
    assert memory_date(FULL) == "2026-02-27"
    assert memory_date(a_memory("We ate.", when=("Day7",))) == "Day7"
    assert datetime_as_iso(None) is None
    assert datetime_as_iso(NOW) == "2026-03-01T12:00:00+00:00"


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | st.text(max_size=10),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=5,
    )
)
def test_the_text_of_an_answer_equals_its_structured_content(content: dict[str, Any]) -> None:
    """A client that reads only one of the two misses nothing."""
    content = escape_foreign_markup_in_json(content)
    result = tool_result_of_content(content)
    assert json.loads(text_of(result)) == content
    assert result.structured_content == content
    assert not result.is_error
    found = over_the_wire(result)
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"] == content


def test_an_answer_is_compact_and_not_escaped() -> None:
    """Every character costs the client tokens."""
    assert text_of(tool_result_of_content({"a": ["東京", 1], "b": True})) == '{"a":["東京",1],"b":true}'


@for_each_row("bad", ["\ud800", "a\udfffb", "\ude00\ud83d"])
def test_half_of_a_surrogate_pair_does_not_keep_an_answer_from_being_sent(bad: str) -> None:
    """It once ended the writer, and with it the server: the ledger holds no such text, but an id or an error may."""
    assert over_the_wire(tool_result_of_content({"text": bad}))["structuredContent"] == {"text": bad}
    assert over_the_wire(tool_result_of_error(InvalidInput(bad)))["isError"] is True


def test_a_refusal_says_what_the_error_says() -> None:
    result = over_the_wire(tool_result_of_error(StorageFull("No space is left; make room.")))
    assert result["content"][0]["text"] == "No space is left; make room."
    assert result["isError"] is True
    assert "structuredContent" not in result


def test_a_crash_tells_an_incident_and_no_traceback_and_the_log_tells_all(caplog: pytest.LogCaptureFixture) -> None:
    """style.md, errors: caught broadly at a tool call, logged with traceback."""
    with caplog.at_level(logging.ERROR):
        words = text_of(tool_result_of_crash("recall", ZeroDivisionError("secret detail")))
    assert "recall failed" in words
    assert "secret" not in words
    assert "Traceback" not in words
    [record] = caplog.records
    incident = record.getMessage().rsplit(" ", 1)[1]
    assert incident in words
    assert record.exc_info is not None


def test_the_reason_why_meaning_is_off_is_told_and_nothing_when_it_is_on() -> None:
    assert words_only_notice("") == ""
    assert "no wheel" in words_only_notice("no wheel")


class NoArguments(ToolArguments):
    """None."""


def toolset(run: Any) -> Toolset:
    tool = Tool(
        name="probe",
        description="A probe.",
        arguments=NoArguments,
        output_schema={"type": "object"},
        run=run,
        read_only=True,
    )
    return Toolset([tool], max_text_chars=100)


async def called(outcome: Any, **arguments: Any) -> types.CallToolResult:
    async def run(call: ToolCallContext, arguments: NoArguments) -> dict[str, Any]:
        if isinstance(outcome, BaseException):
            raise outcome
        result: dict[str, Any] = outcome
        return result

    return await toolset(run).call_tool("probe", arguments, ToolCallContext(ADA, ONLY_AUDIT))


async def test_a_call_is_answered_with_what_the_tool_found() -> None:
    assert (await called({"a": 1})).structured_content == {"a": 1}


async def test_arguments_that_cannot_be_used_are_a_refusal() -> None:
    result = await called({"a": 1}, colour="red")
    assert result.is_error
    assert "colour" in text_of(result)


async def test_a_foreseen_error_is_a_refusal_and_an_unforeseen_one_a_crash() -> None:
    assert text_of(await called(InvalidInput("Say more."))) == "Say more."
    result = await called(KeyError("secret"))
    assert result.is_error
    assert "incident" in text_of(result)


async def test_an_answer_with_a_number_that_json_does_not_know_is_a_crash_and_not_nonsense() -> None:
    assert (await called({"score": float("nan")})).is_error


RECALLED = RecallResult(memories=((FULL, 0.9), (SPARSE, 0.4)), total_tokens=12, budget_used=0.006)


@for_each_row("shape", ["fragments", "memories", "prompt"])
def test_every_format_of_a_recall_is_what_the_schema_says(shape: RecallFormat) -> None:
    """spec P9, L2, L4"""
    tool = make_recall_tool(Random(1))
    for recalled in (RECALLED, RecallResult((), 0, 0.0)):
        brief = recall_result_as_json(recalled, shape)
        for content in (brief, brief | recall_details_as_json(recalled, shape, {})):
            assert shape in content
            jsonschema.validate(content, dict(tool.output_schema), jsonschema.Draft202012Validator)
            assert not holds_null(content)


def test_details_of_a_recall_state_each_text_once() -> None:
    """ruling 23"""
    details = recall_details_as_json(RECALLED, "fragments", {})
    assert [("text" in source, source["provenance"]["full_id"]) for source in details["sources"]] == [
        (False, FULL.id), (False, SPARSE.id)
    ]  # fmt: skip
    assert details["total_tokens"] == 12
    assert "sources" not in recall_details_as_json(RECALLED, "memories", {})


def test_whole_memories_are_what_the_schema_says() -> None:
    """spec P10"""
    content = memory_page_as_json(BrowsedMemories((FULL, SPARSE), missing=(), next_cursor=""), {})
    jsonschema.validate(content, dict(read_whole_memories.output_schema), jsonschema.Draft202012Validator)
    assert set(content) == {"memories"}


def test_a_recalled_memory_costs_little_beside_its_texts() -> None:
    """ruling 23: at most 90 characters beside text, lesson and what was before, and a recall of three at most 300."""
    numbered = replace(FULL, number=12_345, corrected_at=NOW, status="dying")
    item = brief_memory_as_json(numbered, 0.4321)
    assert item["updated"] == "2026-03-01"
    brief = [brief_memory_as_json(replace(SPARSE, number=number), 0.4321) for number in (7, 123, 9_999)]
    for memory in brief:
        assert len(compact(memory)) - len(memory["text"]) <= 90
    assert len(compact({"memories": brief})) - sum(len(memory["text"]) for memory in brief) <= 300
    assert brief[0] == {"id": "m7", "text": "We ate.", "when": "2026-03-01", "score": 0.4321}


def compact(content: dict[str, Any]) -> str:
    return text_of(tool_result_of_content(content))


def test_text_that_does_not_name_its_memories_comes_with_their_sources() -> None:
    """Which memories, when they were, and what they teach (ruling 22)."""
    assert recall_result_as_json(RECALLED, "fragments")["sources"] == [
        {"id": FULL.short_id, "when": "2026-02-27", "lesson": "cook more"},
        {"id": SPARSE.short_id, "when": "2026-03-01"},
    ]


def test_a_hit_has_the_fields_of_the_spec_and_a_short_snippet() -> None:
    """spec H3; where it comes from on request (ruling 23)."""
    hit = SearchHit(
        source="memories",
        id="n",
        timestamp=NOW,
        when="2026-03-01",
        text="x" * 1_000,
        snippet="x" * 399 + "…",
        stored_at=NOW,
        provenance=Provenance(tool="store", client="inspector", session_id="s1"),
        actors=("Ada",),
        position=(1, "n"),
    )
    assert search_hit_as_json(hit) == {"id": "n", "source": "memories", "when": "2026-03-01", "text": "x" * 399 + "…"}
    assert search_hit_as_json(hit, details=True) == search_hit_as_json(hit) | {
        "actors": ["Ada"],
        "provenance": {
            "stored_at": "2026-03-01T12:00:00+00:00", "tool": "store", "client": "inspector", "session_id": "s1",
            "full_id": "n",
        },
    }  # fmt: skip
