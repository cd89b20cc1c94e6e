"""Files as parts: texts and conversations, read as a stream."""

from __future__ import annotations

import io
import json
from itertools import islice
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.errors import InvalidInput
from madeleine.server.cli import ingest_command
from madeleine.server.cli.ingest_command import DocumentPart, DocumentPartReader
from tests.rows import for_each_row

MOST = 40


def parts(content: bytes | IO[bytes], name: str = "a.txt", about: str = "", most: int = MOST) -> list[DocumentPart]:
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    return list(DocumentPartReader(file, name, about=about, most_chars=most).parts())


def refused(content: bytes, name: str = "a.txt") -> str:
    with pytest.raises(InvalidInput) as error:
        parts(content, name)
    return str(error.value)


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages)


# --- texts


def test_a_text_is_cut_at_paragraphs_and_nothing_is_lost() -> None:
    text = "The first paragraph is here.\n\nThe second one is here.\n\nThe third."
    document_parts = parts(text.encode())
    assert [part.text for part in document_parts] == [
        "The first paragraph is here.\n\n", "The second one is here.\n\nThe third."
    ]  # fmt: skip
    assert sum(part.size for part in document_parts) == len(text)


@given(st.text(st.sampled_from("ab. \né雨👩`")).filter(str.strip), st.integers(1, 7))
def test_parts_join_back_whatever_the_size_of_what_is_read_at_once(text: str, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_command, "FILE_READ_CHUNK_BYTES", at_once)
        document_parts = parts(text.encode(), most=9)
    assert all(len(part.text) <= 9 for part in document_parts)
    assert "".join("".join(part.text for part in document_parts).split()) == "".join(text.split())


def test_equal_beginnings_have_equal_keys_whatever_the_file_is_called() -> None:
    old = parts(b"one two three four five six seven.\n\n" * 5)
    longer = parts(b"one two three four five six seven.\n\n" * 9, name="b.md")
    assert [part.key for part in longer[: len(old)]] == [part.key for part in old]
    assert len({part.key for part in longer}) == len(longer) == 9
    assert parts(b"other", about="s")[0].key != parts(b"other", about="t")[0].key


def test_another_beginning_changes_every_key_behind_it() -> None:
    one, other = (parts(start + b"one two three four five six seven.\n\n" * 3) for start in (b"A ", b"B "))
    assert not {part.key for part in one} & {part.key for part in other}


def test_a_byte_order_mark_is_no_text() -> None:
    assert [part.text for part in parts(b"\xef\xbb\xbfhello")] == ["hello"]


class Endless(io.RawIOBase):
    """Text without an end, nor a line's end; counts what was read."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0
        self.given += size
        return b"word " * (size // 5)


def test_only_what_is_needed_is_read() -> None:
    file: Any = Endless()
    found = list(islice(DocumentPartReader(file, "-", about="", most_chars=1_000).parts(), 100))
    assert all(len(part.text) <= 1_000 for part in found)
    assert file.given <= 3 * ingest_command.FILE_READ_CHUNK_BYTES


@for_each_row(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"ab\0cd", "binary"),
        (b"fine \xff", "not UTF-8 (byte 5)"),
        (b"cut off \xe9", "not UTF-8"),
        ("wide".encode("utf-16"), "not UTF-8 (it is UTF-16)"),
    ],
)
def test_what_is_no_text_is_refused_with_what_to_do(content: bytes, said: str) -> None:
    assert said in refused(content)


# --- conversations


def test_each_message_has_its_speaker_and_its_time() -> None:
    document_parts = parts(
        lines(
            {"speaker": "Ada", "text": "Hello.", "ts": "2026-03-01T12:00:00Z", "session": "s1"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi."}, {"type": "image"}], "ts": 1_772_366_400},
            {"role": "user", "content": "Bye.", "ts": 1_772_366_400_000},
            {"role": "tool", "content": ""},
        ),
        name="chat.jsonl",
    )
    assert [(part.text, part.speaker, part.when, part.session_id) for part in document_parts] == [
        ("Hello.", "Ada", "2026-03-01T12:00:00Z", "s1"),
        ("Hi.", "assistant", "2026-03-01T12:00:00+00:00", ""),
        ("Bye.", "user", "2026-03-01T12:00:00+00:00", ""),
        ("", "", "", ""),
    ]
    assert len({part.key for part in document_parts}) == 4


def test_a_conversation_is_known_by_its_first_line_too() -> None:
    assert [part.text for part in parts(lines({"text": "Hello."}), name="-")] == ["Hello."]
    assert [part.text for part in parts(b'{"a": 1}', name="-")] == ['{"a": 1}']
    assert [part.text for part in parts(b"{ braces }", name="-")] == ["{ braces }"]


def test_a_message_too_long_for_a_call_comes_in_several_parts() -> None:
    text = "It rained all day. " * 5
    document_parts = parts(lines({"speaker": "Ada", "text": text}), name="a.jsonl")
    assert "".join(part.text for part in document_parts) == text
    assert {part.speaker for part in document_parts} == {"Ada"}
    assert [bool(part.size) for part in document_parts] == [False] * (len(document_parts) - 1) + [True]


def test_the_same_message_twice_has_two_keys() -> None:
    one, two = parts(lines({"text": "Yes."}, {"text": "Yes."}), name="a.jsonl")
    assert one.key != two.key


@for_each_row("odd", ["\\ud800", "\\u0000", "\\u200b"])
def test_what_cannot_be_stored_is_left_out_and_a_message_of_nothing_else_is_silent(odd: str) -> None:
    whole = "".join(f'"{name}": "{odd}{said}{odd}", ' for name, said in (("speaker", "Ada"), ("ts", "now")))
    blank = ", ".join(f'"{name}": "{odd}"' for name in ("speaker", "ts", "session"))
    content = f'{{{whole}"text": "Hi{odd}."}}\n{{"text": "{odd} "}}\n{{"text": "Bye.", {blank}}}\n'
    first, silent, last = parts(content.encode(), name="a.jsonl")
    kept = {"\\ud800": "?", "\\u0000": "", "\\u200b": "\u200b"}[odd]
    assert (first.text, first.speaker, first.when) == (f"Hi{kept}.", f"{kept}Ada{kept}", f"{kept}now{kept}")
    assert (first.location, last.location) == ("Line 1 of a.jsonl", "Line 3 of a.jsonl")
    assert silent.text == ("? " if kept == "?" else "")
    assert [last.speaker, last.when, last.session_id] == ["?" if kept == "?" else ""] * 3


@for_each_row(
    ("content", "said"),
    [
        (b'{"text": "a"}\nnot json\n', "Line 2 of a.jsonl is not JSON"),
        (b'{"text": "a"}\n\n[1]\n', "Line 3 of a.jsonl is not a JSON object"),
        (b'{"text": "a"}\n{"text": "\xff"}\n', "a.jsonl is not UTF-8 (line 2)"),
        (b'{"text": ' + b"[" * 100_000 + b"\n", "Line 1 of a.jsonl is not JSON"),
    ],
)
def test_a_line_that_is_no_message_is_named(content: bytes, said: str) -> None:
    assert said in refused(content, "a.jsonl")


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_command, "MAX_MESSAGE_LINE_BYTES", 1024 * 1024)
    assert "Line 1 of a.jsonl has more than 1 MB" in refused(b'{"text": "' + b"x" * 2**21, "a.jsonl")
