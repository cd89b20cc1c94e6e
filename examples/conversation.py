"""The sample conversation: sister and brother, five weeks of 2026."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def read_conversation() -> Iterator[dict[str, Any]]:
    """Yield the turns in order; README.md describes their keys."""
    for line in Path(__file__).with_name("conversation.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def store_arguments(turn: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `store` for a turn. The text contains the speaker's name, which recall by meaning needs."""
    optional = ("when", "setting", "feeling", "category", "importance", "emotions", "themes")
    return {
        "text": f"{turn['speaker']}: {turn['text']}",
        "actors": [turn["speaker"]],
        "session_id": turn["session"],
        **{name: turn[name] for name in optional if name in turn},
    }
