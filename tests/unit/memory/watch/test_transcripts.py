"""What is said in a transcript of Claude Code, and what is not."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.watch.transcripts import (
    TranscriptMessage,
    messages_from_transcript_lines,
    prompt_as_in_transcript,
    prompt_message_missing_from_transcript,
)
from tests.rows import for_each_row

AT = "2026-03-01T12:00:00.000Z"


def line(type_: str, content: Any, uuid: str | None = "u", **more: Any) -> bytes:
    entry = {
        "parentUuid": None, "isSidechain": False, "type": type_, "message": {"role": type_, "content": content},
        "uuid": uuid, "timestamp": AT, "sessionId": "s", "cwd": "/project", "version": "2.1.330",
    }  # fmt: skip
    return json.dumps(entry | more, separators=(",", ":")).encode()


def prompt_key(text: str, earlier: int) -> str:
    """The key of a prompt, of which `earlier` equal ones precede it."""
    return f"prompt-{hashlib.sha256(redact_secrets(text).text.encode()).hexdigest()[:24]}-{earlier}"


def texts(*lines: bytes) -> list[str]:
    return [one.text for one in messages_from_transcript_lines(lines)]


def test_a_turn_is_what_the_user_asked_and_what_was_answered() -> None:
    found = messages_from_transcript_lines(
        [
            line("user", "Where is the harbour?", "u1", promptId="p1"),
            line("assistant", [{"type": "thinking", "thinking": "Hm."}], "u2"),
            line("assistant", [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "Read"}], "u3"),
            line("user", [{"type": "tool_result", "content": "a chart"}], "u4", toolUseResult={}),
            line("assistant", [{"type": "text", "text": "South."}, {"type": "text", "text": "Ten minutes."}], "u5"),
        ]
    )
    assert found == [
        TranscriptMessage(
            "user", "Where is the harbour?", prompt_key("Where is the harbour?", 0), AT, "p1", "s", "/project"
        ),
        TranscriptMessage("assistant", "I look.", "u3", AT, "", "s", "/project"),
        TranscriptMessage("assistant", "South.\n\nTen minutes.", "u5", AT, "", "s", "/project"),
    ]


@for_each_row(
    "noise",
    [
        b"", b"not JSON", b'{"type":"user"', b"[]", b'{"type":"user"}', b'{"type":"user","message":7,"uuid":"u"}',
        b'{"type":"summary","summary":"They spoke of the harbour","leafUuid":"u"}',
        b'{"type":"last-prompt","lastPrompt":"hi"}', b'{"type":"something-new","text":"hi","uuid":"u"}',
        b"\xff\xfe", b'{"type":"user","message":' + b"[" * 100_000,
        line("user", "hi", isMeta=True), line("user", "hi", isSidechain=True),
        line("user", "hi", isCompactSummary=True), line("user", "<local-command-stdout>x</local-command-stdout>"),
        line("user", "hi", promptSource="system"), line("user", "[Request interrupted by user]"),
        line("user", "<command-name>/clear</command-name>"),
        line("user", "<bash-input>ls</bash-input>"), line("user", "<system-reminder>x</system-reminder>"),
        line("user", None), line("user", ["hi"]), line("user", [{"type": "text"}]), line("user", " \u200b "),
        line("user", "hi", uuid=None),
        line("assistant", [{"type": "text", "text": "API Error"}], isApiErrorMessage=True),
        line("assistant", "x", message={"role": "assistant", "model": "<synthetic>", "content": "No response."}),
        line("system", "hi", subtype="stop_hook_summary"),
        line("attachment", "hi", attachment={"type": "hook_success", "stdout": "<memory>\nThe harbour\n</memory>"}),
    ],
)  # fmt: skip
def test_what_nobody_said_is_left_out_and_does_no_harm(noise: bytes) -> None:
    assert texts(line("user", "before", "u1"), noise, line("user", "after", "u2")) == ["before", "after"]


def test_what_the_program_adds_to_a_message_is_taken_out() -> None:
    added = "<system-reminder>\nRemember: be brief.\n</system-reminder>\n"
    assert texts(line("user", [{"type": "text", "text": added}, {"type": "text", "text": "Hi\x00 \ud83d"}])) == ["Hi ?"]


def test_a_prompt_has_its_key_before_it_is_written_and_the_same_one_afterwards() -> None:
    written: list[bytes] = []
    keys = []
    for uuid, text in (("u1", "go on"), ("u2", "stop"), ("u3", "go on")):
        new = prompt_message_missing_from_transcript(
            messages_from_transcript_lines(written), prompt_as_in_transcript(f" {text}\n"), ""
        )
        assert new is not None
        keys.append(new.key)
        written.append(line("user", text, uuid))
    assert [one.key for one in messages_from_transcript_lines(written)] == keys
    assert len(set(keys)) == 3


def test_a_prompt_s_key_tells_nothing_of_a_secret_in_it() -> None:
    """A guess at a password must not be confirmed by the key. Two prompts that differ in it alone are still two."""
    told = ["my password is hunter2!", "my password is swordfish7!"]
    keys = [
        one.key
        for one in messages_from_transcript_lines(
            [line("user", text, uuid) for uuid, text in zip("ab", told, strict=True)]
        )
    ]
    assert keys == [prompt_key(told[1], 0), prompt_key(told[0], 1)]
    new = prompt_message_missing_from_transcript(
        messages_from_transcript_lines([line("user", told[0], "a")]), told[1], ""
    )
    assert new is not None
    assert new.key == keys[1]


def test_a_prompt_that_is_written_already_is_not_taken_for_another() -> None:
    spoken = messages_from_transcript_lines(
        [line("user", "go on", promptId="p1"), line("user", "go on", promptId="p2")]
    )
    assert prompt_message_missing_from_transcript(spoken, "go on", "p2") is None
    later = prompt_message_missing_from_transcript(spoken, "go on", "p3")
    assert later is not None
    assert later.key == prompt_key("go on", 2)


@for_each_row(
    ("prompt", "told"),
    [
        ("/clear", ""), ("/review PR 12", ""), ("/my-tools:do it", ""), ("<task-notification>x", ""), ("  ", ""),
        ("/home/zoe is full", "/home/zoe is full"), (" What is / in a URL? ", "What is / in a URL?"),
    ],
)  # fmt: skip
def test_commands_are_not_said_to_the_assistant(prompt: str, told: str) -> None:
    assert prompt_as_in_transcript(prompt) == told
