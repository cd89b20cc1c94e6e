"""What `observe` makes of its arguments, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from madeleine.memory.chat import MAX_OBSERVED_MESSAGES_PER_CALL, NewConversationMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.model import Scope
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.observe import AgentExtractedMemory, ObserveConversationResult, ObservedConversationPart
from madeleine.tools.arguments import validate_tool_arguments
from madeleine.tools.conversation import observe_conversation as observe_tool
from madeleine.tools.tool import ToolCallContext, ToolUseCases
from tests.doubles import ADA, a_memory
from tests.doubles_chat import a_message

HI = {"role": "user", "text": "Hi"}
WHOLE = {
    "session_id": "s",
    "title": "Greetings",
    "interface": "cli",
    "messages": [
        HI | {"speaker": "Zoé", "when": "2026-03-01T13:00:00+01:00", "key": "k"},
        {"role": "tool", "text": "ok"},
    ],
    "memories": [
        {"text": " They met. ", "importance": 1, "emotions": ["joy"], "lesson": "Say hi.", "messages": ["k", 1]},
        {"text": "It was brief.", "importance": 0.2},
    ],
}


async def asked(
    given: Mapping[str, Any], told: ObserveConversationResult | None = None
) -> tuple[ObservedConversationPart, str, dict[str, Any]]:
    """What the use case is told, and the answer to the caller."""
    seen: list[tuple[ObservedConversationPart, str]] = []

    async def observe(
        scope: Scope, observation: ObservedConversationPart, *, request: str = ""
    ) -> ObserveConversationResult:
        assert scope is ADA
        seen.append((observation, request))
        return told or ObserveConversationResult(new_messages=(), known_count=0, last_key=None)

    call = ToolCallContext(ADA, cast(ToolUseCases, SimpleNamespace(observe=observe)), request_key=lambda: "request-1")
    answer = await observe_tool.run(call, validate_tool_arguments(observe_tool.arguments, given, max_text_chars=100))
    [(observation, request)] = seen
    return observation, request, answer


async def test_everything_that_is_said_reaches_the_use_case() -> None:
    seen, request, _ = await asked(WHOLE)
    assert seen == ObservedConversationPart(
        session_id="s",
        messages=[
            NewConversationMessage(
                role="user", text="Hi", speaker="Zoé", at=datetime(2026, 3, 1, 12, tzinfo=UTC), key="k"
            ),
            NewConversationMessage(role="tool", text="ok"),
        ],
        memories=[
            AgentExtractedMemory(ExtractedMemory("They met.", ("joy",), 1, "Say hi."), ("k", 1)),
            AgentExtractedMemory(ExtractedMemory("It was brief.", (), 0.2)),
        ],
        title="Greetings",
        interface="cli",
    )
    assert request == "request-1"


async def test_the_answer_says_what_was_new() -> None:
    memory = a_memory("They met.")
    told = ObserveConversationResult(
        new_messages=(one := a_message("Hi"), two := a_message("Hello")),
        known_count=3,
        last_key="k",
        memories=(StoredSceneResult(memory=memory, status="reinforced"), None),
        redacted={"password": 1},
    )
    _, _, answer = await asked(WHOLE, told)
    assert answer == {
        "new": 2, "ids": [one.id[:8], two.id[:8]], "position": 0, "known": 3, "last_key": "k",
        "memories": [{"id": memory.id, "status": "reinforced"}, {"status": "forgotten"}], "redacted": {"password": 1},
    }  # fmt: skip
    assert (await asked({"session_id": "s"}))[2] == {"new": 0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"messages": [HI] * (MAX_OBSERVED_MESSAGES_PER_CALL + 1)}, "messages: "),
        ({"messages": [{"role": "robot", "text": "Hi"}]}, "messages.0.role: "),
        ({"messages": [HI, {"role": "user", "text": "x" * 101}]}, "messages.1.text: has 101 characters, at most 100"),
        ({"messages": [{"role": "user"}]}, "messages.0.text: is required"),
        ({"messages": [HI | {"text": " "}]}, "messages.0.text: is empty"),
        ({"messages": [HI | {"when": "yesterday"}]}, "messages.0.when: 'yesterday' is not an ISO date or time"),
        ({"messages": [HI | {"being_id": "bob"}]}, "'messages.0.being_id': leave it out"),
        ({"messages": [HI | {"key": None}]}, "must not be null"),
        ({"memories": [{"text": "x", "importance": 2}]}, "memories.0.importance: "),
        ({"memories": [{"text": "x", "importance": 1, "emotions": 3}]}, "memories.0.emotions"),
        (
            {"memories": [{"text": "x", "importance": 1, "messages": [MAX_OBSERVED_MESSAGES_PER_CALL]}]},
            "memories.0.messages",
        ),
        ({"memories": [{"importance": 1}]}, "memories.0.text: is required"),
        ({"memories": [{"text": "x", "importance": 1}] * 21}, "memories: "),
    ],
)
async def test_an_unusable_argument_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await asked({"session_id": "s"} | given)
    assert said in str(caught.value)
