"""Changes to Codex's configuration."""

from __future__ import annotations

import tomllib

import pytest

from madeleine.server.clients.jsonc import UnreadableConfiguration
from madeleine.server.clients.toml_text import remove_toml_table, set_toml_table
from tests.rows import for_each_row

PATH = ("mcp_servers", "madeleine")
TABLE = {"command": 'C:\\Program "Files"\\m.exe', "args": [], "env": {"MADELEINE_BEING": "Zoé", "odd key": "\x7f"}}


@for_each_row(
    "text",
    [
        "",
        'model = "o" # mine\n',
        '# top\r\n[mcp_servers.other]\r\ncommand = "x"\r\n\r\n# of the profile\r\n[profiles.p]\r\nmodel = "y"\r\n',
    ],
)
def test_a_table_is_put_in_and_taken_out_and_all_else_stays(text: str) -> None:
    before = tomllib.loads(text)
    changed = set_toml_table(text, PATH, TABLE)
    assert tomllib.loads(changed) == before | {"mcp_servers": before.get("mcp_servers", {}) | {"madeleine": TABLE}}
    assert changed.startswith(text.rstrip())
    assert set_toml_table(changed, PATH, TABLE) == changed
    assert remove_toml_table(changed, PATH).rstrip() == text.rstrip()


def test_an_older_entry_with_tables_below_it_is_replaced_where_other_tables_stay() -> None:
    text = (
        '[mcp_servers."madeleine"]\ncommand = "old"\n[ mcp_servers . madeleine . env ]\nA = "b"\n# of z\n[z]\nq = 1\n'
    )
    changed = set_toml_table(text, PATH, TABLE)
    assert tomllib.loads(changed) == {"z": {"q": 1}, "mcp_servers": {"madeleine": TABLE}}
    assert changed.startswith("# of z\n[z]\nq = 1\n")


def test_a_header_within_a_string_is_no_header() -> None:
    text = 'a = """\n[mcp_servers.madeleine]\n"""\n'
    changed = set_toml_table(text, PATH, TABLE)
    assert changed.startswith(text)
    with pytest.raises(UnreadableConfiguration):
        remove_toml_table(changed, PATH)


@for_each_row("text", ["a = ", 'mcp_servers = "x"', 'mcp_servers = { madeleine = { command = "x" } }'])
def test_what_cannot_be_changed_in_its_place_is_refused(text: str) -> None:
    with pytest.raises(UnreadableConfiguration):
        set_toml_table(text, PATH, TABLE)
