"""The context and the profile, from a real client to the disk and back: tool, prompt, resources and command."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents

from madeleine.memory.audit import AuditQuery
from madeleine.memory.errors import InvalidInput
from madeleine.memory.profile import audit_id_of_profile_entry
from madeleine.memory.short_ids import ShortIdTranslator
from madeleine.server.cli.arguments import build_command_line_parser
from madeleine.server.cli.profile_command import profile_command
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import open_ledger_without_index
from tests.doubles import ADA
from tests.e2e.hosting import hosts_of
from tests.e2e.http.http_serving import serving
from tests.e2e.serving import COMMAND, ERAS, ROOT, Era, call_tool, connected, environment, tool_error
from tests.waiting import DEADLOCK_S

EXAMPLE = """\
<memory>
[SEMANTIC] User is a backend engineer specializing in Python and PostgreSQL.
[SEMANTIC] User is building a SaaS product with FastAPI and Stripe integration.
[PROCEDURAL] Communication style: direct, technical, no preamble.
[EPISODIC] 2024-01-20: Discussed database migration from MySQL to PostgreSQL.
[EPISODIC] 2024-01-18: User reported issue with Alembic autogenerate on enums.
</memory>"""
NOTHING: dict[str, Any] = {"entries": [], "notes": []}
MESSAGE = (
    "For the user, a backend engineer: how do enums go to PostgreSQL with Alembic in the SaaS product's migration?"
)


async def live(client: Client) -> None:
    await call_tool(client, "profile", action="set", kind="soul", name="personality", text="Warm and curious.")
    await call_tool(client, "profile", action="set", kind="partner_rules", name="Address", text="never tell it")
    await call_tool(
        client, "profile", action="set", kind="preferences", name="Communication style",
        text="direct, technical, no preamble.",
    )  # fmt: skip
    await call_tool(client, "profile", action="set", kind="knowledge", name="Router", text="in the hall")
    await call_tool(client, "profile", action="set", kind="notes", name="todo", text="Buy </context> bread")
    await call_tool(
        client, "store", text="User is a backend engineer specializing in Python and PostgreSQL.", category="semantic"
    )
    await call_tool(
        client,
        "store",
        text="User is building a SaaS product with FastAPI and Stripe integration.",
        category="semantic",
    )
    await call_tool(client, "store", text="User reported issue with Alembic autogenerate on enums.", when="2024-01-18")
    await call_tool(client, "store", text="Discussed database migration from MySQL to PostgreSQL.", when="2024-01-20")


async def read(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert content.uri == uri
    return content.text


async def resources(client: Client) -> dict[str, str]:
    """Those of a being: a skill is everybody's."""
    listed = (await client.list_resources()).resources
    return {one.name: one.uri for one in listed if not one.uri.startswith("skill://")}


async def prompt(client: Client, **arguments: str) -> list[tuple[str, str]]:
    got = await client.get_prompt("memory_context", arguments)
    return [(one.role, one.content.text) for one in got.messages if isinstance(one.content, TextContent)]


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_over_stdio_tool_prompt_and_resources_hold_identity_and_memory_block(tmp_path: Path, era: Era) -> None:
    """spec P5, L4, with the real model."""
    async with connected(tmp_path, being="Ada / ü", era=era) as client:
        assert not {"context", "profile"} & {tool.name for tool in (await client.list_tools()).tools}
        await live(client)
        await call_tool(client, "observe", session_id="s1", messages=[{"role": "user", "text": "Good morning"}])
        whole = await call_tool(client, "context", message=MESSAGE, session_id="s1", enable_tags_placeholder=True)
        assert whole["memory_block"] == EXAMPLE
        assert whole["system_prompt"].startswith(
            "# Personality\nWarm and curious.\n\n# Rules\n- Address: never tell it"
        )
        assert [turn["role"] for turn in whole["snapshot"]] == ["user", "assistant"]
        assert [one["text"] for one in whole["history_current_chat"]] == ["Good morning"]
        assert whole["tags_placeholder"] == whole["dropped"] == []
        assert whole["tokens"]["total"] <= whole["tokens"]["limit"] == 8_000
        assert len(whole["sources"]) == 5
        little = await call_tool(client, "context", message=MESSAGE, session_id="s1", token_limit=60)
        assert little["tokens"]["total"] <= 60
        assert "Warm and curious" in little["prompt"]
        assert {one["block"] for one in little["dropped"]} >= {"memory_block", "notes", "history_current_chat"}
        assert [one.name for one in (await client.list_prompts()).prompts] == ["memory_context"]
        [user, assistant, question] = await prompt(client, message=MESSAGE, token_limit="2000")
        assert (user[0], assistant[0], question[0]) == ("user", "assistant", "user")
        assert user[1].startswith("# Personality\nWarm and curious.")
        assert user[1].endswith("- Router: in the hall\n</context>")
        assert "Buy &lt;/context> bread" in user[1]
        assert EXAMPLE in question[1]
        assert question[1].endswith(f"\n\n{MESSAGE}")
        own = await resources(client)
        assert list(own) == ["snapshot", "recent", "diary", "profile"]
        assert own["snapshot"] == "memory://Ada%20%2F%20%C3%BC/snapshot"
        assert "Router: in the hall" in await read(client, own["snapshot"])
        assert list(json.loads(await read(client, own["recent"]))) == ["recent_nodes"]
        assert json.loads(await read(client, own["diary"])) == {"diary": []}
        entries = json.loads(await read(client, own["profile"]))["entries"]
        assert [one["kind"] for one in entries] == ["soul", "partner_rules", "preferences", "knowledge"]


BAD_PROMPTS: list[tuple[dict[str, str], str]] = [
    ({"message": "x", "token_limit": "many"}, "token_limit"),
    ({"message": "x", "token_limit": "0"}, "token_limit"),
    ({"message": "x", "colour": "red"}, "colour"),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("sse", [False, True])
async def test_over_http_the_being_is_the_tokens_and_no_other_is_read(tmp_path: Path, era: Era, sse: bool) -> None:
    """Ruling 12"""
    async with serving(tmp_path, being="cyd", sse=True) as server:
        ada, bob, reader = (
            await server.token("ada"),
            await server.token("bob"),
            await server.token("ada", read_only=True),
        )
        async with server.connected(ada, era=era, sse=sse) as client:
            await live(client)
            adas = await resources(client)
            assert "Router" in await read(client, adas["snapshot"])
            assert (await call_tool(client, "context", message=MESSAGE))["system_prompt"].startswith("# Personality")
            for wrong, said in BAD_PROMPTS:
                with pytest.raises(MCPError, match=said):
                    await client.get_prompt("memory_context", wrong)
            with pytest.raises(MCPError, match="no prompt"):
                await client.get_prompt("forget_everything", {})
        async with server.connected(bob, era=era, sse=sse) as client:
            bobs = await resources(client)
            assert [uri.split("/")[2] for uri in bobs.values()] == ["bob"] * 4
            assert await read(client, bobs["snapshot"]) == ""
            assert json.loads(await read(client, bobs["profile"])) == NOTHING
            for uri in (*adas.values(), "memory://bob/secrets", "memory://bob/snapshot?x=1", "file:///etc/passwd", "x"):
                with pytest.raises(MCPError, match="Resource not found"):
                    await client.read_resource(uri)
            assert "Warm" not in json.dumps(await call_tool(client, "context", message=MESSAGE))
            assert "Warm" not in str(await prompt(client, message=MESSAGE))
        async with server.connected(reader, era=era, sse=sse) as client:
            assert "Warm" in str(await prompt(client, message=MESSAGE))
            assert "Router" in await read(client, adas["snapshot"])
            assert "read-only" in await tool_error(client, "profile", {})


async def test_a_server_that_only_reads_gives_a_context_and_leaves_no_trace(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.connected() as client:
        await live(client)
    async with serving(tmp_path, read_only=True) as server, server.connected() as client:
        assert (await call_tool(client, "context", message=MESSAGE))["memory_block"] == EXAMPLE
        assert EXAMPLE in (await prompt(client, message=MESSAGE))[-1][1]
        assert "read-only" in await tool_error(client, "profile", {})
    async with serving(tmp_path) as server, server.connected() as client:
        assert json.loads(await read(client, "memory://ada/recent")) == {"recent_nodes": []}


async def test_a_connection_without_the_tool_has_neither_prompt_nor_a_being_s_resources(tmp_path: Path) -> None:
    async with serving(tmp_path, toolsets=["memory"]) as server, server.connected() as client:
        with pytest.raises(MCPError):
            await client.list_prompts()
        with pytest.raises(MCPError):
            await client.read_resource("memory://ada/snapshot")
        assert await resources(client) == {}
    async with serving(tmp_path, toolsets=["context"]) as server, server.connected() as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["context", "profile"]


async def test_the_settings_are_what_holds_where_a_call_says_nothing_else(tmp_path: Path) -> None:
    """spec H5"""
    set_: dict[str, Any] = {"enable_memories": False, "context_token_limit": 70, "prompt_lite_mode": True}
    async with serving(tmp_path, **set_) as server, server.connected() as client:
        await live(client)
        built = await call_tool(client, "context", message=MESSAGE)
        assert "memory_block" not in built
        assert built["tokens"]["limit"] == 70
        assert (await call_tool(client, "context", message=MESSAGE, enable_memories=True, token_limit=5_000))[
            "memory_block"
        ]


PROFILE_CALLS: list[tuple[dict[str, Any], str]] = [
    ({"action": "set", "kind": "map", "name": "Kitchen"}, "text"),
    ({"action": "set", "name": "Kitchen", "text": "x"}, "kind and name"),
    ({"action": "remove", "kind": "map"}, "kind and name"),
    ({"action": "remove", "kind": "map", "name": "Kitchen"}, "no entry 'Kitchen'"),
    ({"action": "remove", "kind": "map", "name": "Kitchen", "text": "x"}, "text"),
    ({"action": "show", "text": "x"}, "text"),
    ({"action": "set", "kind": "soul", "name": "legs", "text": "two"}, "no part 'legs'"),
    (
        {"action": "set", "kind": "map", "name": "a", "text": "x" * 8_001},
        "text: has 8,001 characters, at most 8,000 are accepted; shorten it.",
    ),
    ({"action": "done", "kind": "map", "name": "Kitchen"}, "done is for notes"),
    ({"action": "done", "kind": "notes", "name": "nobody"}, "no note"),
    ({"action": "enable", "kind": "notes", "name": "x"}, "enable is for"),
    ({"action": "enable", "kind": "map", "name": "x"}, "Only partner rules"),
    ({"action": "set", "kind": "notes", "name": "scene", "text": "{}"}, "for the patrol"),
    ({"kind": "diary"}, "kind"),
]


async def test_a_profile_is_shown_changed_and_audited_and_bad_changes_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.connected() as client:
        await live(client)
        for arguments, named in PROFILE_CALLS:
            assert named in await tool_error(client, "profile", arguments)
        [note] = (await call_tool(client, "profile", kind="notes"))["notes"]
        [style] = (await call_tool(client, "profile", kind="preferences"))["entries"]
        await call_tool(client, "profile", action="disable", kind="partner_rules", name="Address")
        assert await call_tool(client, "profile", action="done", kind="notes", name=note["id"]) == {"done": note["id"]}
        await call_tool(client, "profile", action="remove", kind="preferences", name="Communication style")
        assert (await call_tool(client, "recall_memory", ids=[style["memory_id"]]))["memories"] == []
        after = await call_tool(client, "profile")
        assert [(one["kind"], one.get("enabled")) for one in after["entries"]] == [
            ("soul", None), ("partner_rules", False), ("knowledge", None),
        ]  # fmt: skip
        assert after["notes"] == []
        shown = await call_tool(client, "context", message=MESSAGE)
        assert "never tell it" not in shown["prompt"]
        assert "direct, technical" not in shown["prompt"]


async def test_what_is_shown_is_audited_with_its_ids(tmp_path: Path) -> None:
    """spec O4"""
    async with serving(tmp_path) as server, server.connected() as client:
        await live(client)
        built = await call_tool(client, "context", message=MESSAGE)
        await prompt(client, message=MESSAGE)
        await read(client, "memory://ada/profile")
        [style] = (await call_tool(client, "profile", kind="preferences"))["entries"]
        await call_tool(client, "profile", action="disable", kind="preferences", name=style["name"])
    async with open_ledger_without_index(Settings(data_dir=tmp_path)) as ledger:
        entries = await ledger.audit.audit_entries(AuditQuery(event="recall"))
        full_ids = await ShortIdTranslator(ledger.short_ids).full_memory_id_by_given_id(
            ADA, [style["memory_id"], *(one["id"] for one in built["sources"])]
        )
    style_id = full_ids.pop(style["memory_id"])
    preference = audit_id_of_profile_entry("preferences", style["name"])
    shown = {entry.tool: entry.ids for entry in entries}
    # Once, of many calls: the others wrote.
    assert [entry.ids for entry in entries if entry.tool == "profile"] == [(preference, style_id)]
    recalled = set(full_ids.values())
    assert recalled <= set(shown["context"])
    assert recalled <= set(shown["memory_context"])
    assert {"profile/soul", "profile/knowledge"} <= set(shown["context"])
    assert "soul/personality" in shown["memory://profile"]
    assert "Router" not in str(shown)


@pytest.mark.slow
async def test_the_command_shows_and_changes_a_profile_through_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    settings = Settings(data_dir=tmp_path, being="ada")
    rule = tmp_path / "rule.txt"
    rule.write_text("never\ntell it", encoding="utf-8")

    async def profile(*arguments: str) -> str:
        await profile_command(settings, build_command_line_parser().parse_args(["profile", *arguments]))
        return capsys.readouterr().out

    try:
        # The host is a child of this one, not of the test's own process.
        assert json.loads(await asyncio.to_thread(run, tmp_path, "profile", "show", "--json")) == NOTHING
        assert "Nothing of it is known" in await profile("show")
        assert await profile("set", "soul", "voice", "calm [bold]and[/bold] kind") == "Written: voice.\n"
        await profile("set", "partner_rules", "Address", "--file", str(rule))
        await profile("set", "notes", "todo", "Buy bread")
        assert await profile("disable", "partner_rules", "Address") == "Off: Address.\n"
        shown = await profile("show")
        assert "calm [bold]and[/bold] kind" in shown
        assert "Address (off)" in shown
        [note] = json.loads(await profile("show", "notes", "--json"))["notes"]
        assert await profile("done", note["id"]) == f"Done: {note['id']}.\n"
        await profile("remove", "partner_rules", "Address")
        with pytest.raises(InvalidInput, match="no part 'legs'"):
            await profile("set", "soul", "legs", "two")
        with pytest.raises(InvalidInput, match="one of the two"):
            await profile("set", "soul", "voice")
        assert [one["name"] for one in json.loads(await profile("show", "--json"))["entries"]] == ["voice"]
    finally:
        await asyncio.to_thread(run, tmp_path, "stop")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"read_only": True}, "run it with MADELEINE_READ_ONLY=false"),
        ({"exclude_tools": ["forget", "profile"]}, "run it with MADELEINE_EXCLUDE_TOOLS=,"),
    ],
)
async def test_a_profile_command_without_its_tool_names_the_setting_and_starts_no_host(
    tmp_path: Path, setting: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        await profile_command(
            Settings(data_dir=tmp_path, **setting), build_command_line_parser().parse_args(["profile", "show"])
        )
    assert hosts_of(tmp_path) == []


def run(data_dir: Path, *words: str) -> str:
    return subprocess.run(
        [*COMMAND, *words],
        env=environment(data_dir),
        cwd=ROOT,
        capture_output=True,
        timeout=DEADLOCK_S,
        check=True,
        encoding="utf-8",
    ).stdout
