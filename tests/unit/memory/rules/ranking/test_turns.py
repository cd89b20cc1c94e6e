"""ruling 24: what an agent notes with the session it is in is no turn of a conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from madeleine.memory.model import Provenance
from madeleine.memory.rules.ranking.turns import is_turn_of_conversation
from tests.doubles import a_memory


@pytest.mark.parametrize(
    ("text", "actors", "is_turn"),
    [
        ("Ann: The kids loved the lake!", ("Ann",), True),
        ("Ann: The kids loved the lake!", (), True),
        ("ann: The kids loved the lake!", ("Ann Miller",), True),
        ("アン：湖は楽しかった", ("アン",), True),
        ("We drove to the lake on Sunday.", ("Ann",), True),
        ("Wir waren am Sonntag am See.", ("Anna",), True),
        ("We put sessions into Redis.", (), False),
        ("Ann drove to the lake on Sunday.", ("Ann",), False),
        ("Door code: the year of the flood.", ("Ann",), False),
        ("Ann Lee: I met Ben in Leeds.", (), True),
        ("user 1: hello", (), True),
        ("Any tips for a trip to the lake?", (), True),
        ("By the way, I can help you with that.", (), True),
        ("Das hast du gut gemacht.", (), True),
        ("私の鍵はどこですか？", (), True),
        ("Is the lake open? asked Ann.", ("Ann",), False),
        ("See https://a.example/c?d=1 for the docs", (), False),
        ("The query has WHERE id = ?", (), False),
        ("Temp dir: /tmp/x", (), False),
        ("Name der Katze: Minka.", (), False),
        ("Rate limit: 600 requests a minute.", (), False),
        ("Dentist appointment for Theo: 4 April, 9:20.", (), False),
        ("", (), False),
    ],
)
def test_a_turn_is_said_by_somebody_in_a_session(text: str, actors: tuple[str, ...], *, is_turn: bool) -> None:
    memory = a_memory(text)
    told = replace(memory, scene=replace(memory.scene, actors=actors))
    assert not is_turn_of_conversation(told)
    assert is_turn_of_conversation(replace(told, provenance=Provenance(tool="store", session_id="s"))) == is_turn
