"""Secrets in scenes and notes are gone before anything is embedded, compared or written."""

from __future__ import annotations

import json

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.new_scene import NewScene, redact_scene
from madeleine.memory.model import DatedAction, Scene
from madeleine.memory.rules.storing.secrets import redact_note_content, redact_nothing, redact_secrets

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
MARK = "[redacted: github token]"
EVERYWHERE = NewScene(
    scene=Scene(
        action=f"She sent {TOKEN}",
        actors=("Ada", TOKEN),
        when=(TOKEN, DatedAction(TOKEN, TOKEN)),
        setting=TOKEN,
        dialogue=("Hello", TOKEN),
        sensory=(TOKEN,),
    ),
    feeling=TOKEN,
    lesson=TOKEN,
    themes=(TOKEN,),
    session_id=TOKEN,
)


def test_every_text_of_a_scene_is_cleaned_and_the_secrets_are_counted() -> None:
    cleaned, found = redact_scene(EVERYWHERE, redact_secrets)
    assert TOKEN not in repr(cleaned)
    assert cleaned.scene == Scene(
        action=f"She sent {MARK}",
        actors=("Ada", MARK),
        when=(MARK, DatedAction(MARK, MARK)),
        setting=MARK,
        dialogue=("Hello", MARK),
        sensory=(MARK,),
    )
    assert (cleaned.feeling, cleaned.lesson, cleaned.themes, cleaned.session_id) == (MARK, MARK, (MARK,), MARK)
    assert found == {"github token": 12}


def test_turned_off_nothing_is_changed() -> None:
    assert redact_scene(EVERYWHERE, redact_nothing) == (EVERYWHERE, {})


def test_a_key_that_is_a_secret_is_refused_without_repeating_it() -> None:
    with pytest.raises(InvalidInput, match="github token") as refused:
        redact_scene(NewScene(scene=Scene(action="a"), key=TOKEN), redact_secrets)
    assert TOKEN not in str(refused.value)


def test_a_note_without_secrets_stays_as_it_was_written() -> None:
    for content in ('{ "action":"caf\\u00e9",  "n": 1.50 }', "no JSON at all", "[1, null]", ""):
        assert redact_note_content(content, redact_secrets) == (content, {})


def test_a_note_stays_json_and_loses_its_secrets_however_they_are_written() -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in TOKEN)
    content = f'{{"action": "x {escaped}", "{TOKEN}": [{{"b": "{TOKEN}"}}], "pass{""}word": "hunter2", "quote": "\\""}}'
    cleaned, found = redact_note_content(content, redact_secrets)
    assert json.loads(cleaned) == {
        "action": f"x {MARK}",
        MARK: [{"b": MARK}],
        "pass" + "word": "[redacted: password]",
        "quote": '"',
    }
    assert found == {"github token": 3, "password": 1}


def test_a_name_that_comes_twice_hides_nothing() -> None:
    cleaned, _ = redact_note_content(f'{{"a": "{TOKEN}", "a": "b"}}', redact_secrets)
    assert TOKEN not in cleaned


def test_what_is_no_json_is_cleaned_as_text() -> None:
    assert redact_note_content(f'{{"action": {TOKEN}', redact_secrets) == (f'{{"action": {MARK}', {"github token": 1})


def test_a_key_over_several_lines_is_taken_out_of_a_note() -> None:
    key = "-----BEGIN PRIVATE " + "KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE " + "KEY-----"
    cleaned, _ = redact_note_content(json.dumps({"action": key}), redact_secrets)
    assert json.loads(cleaned) == {"action": "[redacted: private key]"}
