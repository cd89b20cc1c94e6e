"""`madeleine init` under another home: what it finds, shows, writes and takes out again."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from madeleine.operating_system import OperatingSystem
from madeleine.server.cli.arguments import build_command_line_parser
from madeleine.server.cli.main import main
from madeleine.server.clients.catalogue import (
    McpServerEntry,
    claude_code_hooks_by_event,
    known_mcp_client_programs,
    server_start_command_line,
)
from madeleine.server.clients.changes import FileChange, write_file_change
from madeleine.server.clients.configuration_paths import ClientConfigurationPaths
from madeleine.server.clients.jsonc import UnreadableConfiguration
from tests.e2e.serving import ROOT
from tests.rows import for_each_row

Run = Callable[..., int]
CLIENTS = ["claude-code", "claude-desktop", "codex", "cursor", "gemini-cli", "vscode", "windsurf", "zed"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("MADELEINE_BEING", "ada")
    monkeypatch.setattr(sys, "platform", "linux")
    return home


def written(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def test_what_was_put_into_every_client_is_undone_to_the_byte(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = {
        ".claude.json": '{"numStartups": 3, "mcpServers": {"x": {"command": "x", "env": {"K": "ghp_'
        + "a1B2" * 9
        + '"}}}}',
        ".claude/settings.json": '{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say"}]}]}\n}\n',
        ".codex/config.toml": 'model = "o" # mine\n',
        ".config/Code/User/mcp.json": '{\n\t// none yet\n\t"servers": {},\n}\n',
        ".config/zed/settings.json": '// Zed\n{ "theme": "One" }\n',
        ".cursor/mcp.json": "",
        ".codeium/windsurf/mcp_config.json": '{"mcpServers": {"madeleine": {"command": "old"}}}',
    }
    for name, text in theirs.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / ".claude.json").chmod(0o640)
    (home / ".gemini").mkdir()
    before = written(home)

    assert main(["init", "--dry-run"]) == 0
    assert written(home) == before
    shown = capsys.readouterr().out
    assert "ghp_" not in shown
    assert main(["init", "--yes"]) == 0
    code_servers = json.loads((home / ".claude.json").read_text())["mcpServers"]
    assert set(code_servers) == {"x", "madeleine"}
    assert code_servers["madeleine"]["env"]["MADELEINE_BEING"] == "ada"
    assert stat.S_IMODE((home / ".claude.json").stat().st_mode) == 0o640
    hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    assert [len(hooks[event]) for event in hooks] == [2, 1, 1, 1, 1]
    codex = tomllib.loads((home / ".codex/config.toml").read_text())
    assert codex["mcp_servers"]["madeleine"]["command"] == server_start_command_line()[0]
    assert "madeleine" in json.loads((home / ".gemini/settings.json").read_text())["mcpServers"]
    assert set(json.loads((home / ".codeium/windsurf/mcp_config.json").read_text())["mcpServers"]) == {"madeleine"}
    assert (home / ".cursor/mcp.json.before-madeleine").read_bytes() == b""

    after = written(home)
    assert main(["init", "--yes"]) == 3
    assert written(home) == after
    assert main(["init", "--undo", "--yes"]) == 0
    assert written(home) == before
    assert main(["init", "--undo", "--yes", "--client", "zed", "--client", "codex"]) == 3


def test_undo_keeps_what_others_have_changed_since(home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "a"}\n')
    assert main(["init", "--yes", "--client", "claude-code"]) == 0
    data = json.loads(settings.read_text())
    data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    settings.write_text(json.dumps(data | {"model": "b"}))
    (home / ".claude.json").write_text((home / ".claude.json").read_text().replace("{", '{"numStartups": 1,', 1))
    assert main(["init", "--undo", "--yes"]) == 0
    assert json.loads(settings.read_text()) == {
        "model": "b", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
    }  # fmt: skip
    assert json.loads((home / ".claude.json").read_text()) == {"numStartups": 1, "mcpServers": {}}
    assert not list(home.rglob("*.before-madeleine"))


def test_a_file_that_cannot_be_read_is_left_and_the_paste_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{broken")
    (home / ".gemini").mkdir()
    assert main(["init", "--yes"]) == 1
    errors = capsys.readouterr().err
    assert "Nothing was changed there" in errors
    assert '"mcpServers"' in errors
    assert (home / ".cursor" / "mcp.json").read_text() == "{broken"
    assert (home / ".gemini" / "settings.json").exists()


def test_the_plugin_brings_server_and_hooks_so_claude_code_is_left(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enabledPlugins": {"madeleine@madeleine": true}}')
    before = written(home)
    assert main(["init", "--yes"]) == 3
    assert "the plugin is installed" in capsys.readouterr().out
    assert written(home) == before


def test_a_link_stays_a_link_and_a_file_that_changed_meanwhile_is_left(home: Path) -> None:
    real, link = home / "dotfiles.json", home / "mcp.json"
    real.write_text("{}")
    link.symlink_to(real)
    write_file_change(FileChange(link, "{}", '{"a": 1}'))
    assert link.is_symlink()
    assert real.read_text() == '{"a": 1}'
    with pytest.raises(UnreadableConfiguration, match="changed meanwhile"):
        write_file_change(FileChange(link, "{}", '{"b": 1}'))
    assert sorted(written(home)) == ["dotfiles.json", "mcp.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["init"], 2, "Nobody can be asked here"),
        (["init", "--client", "emacs", "--yes"], 2, "Known are claude-code, claude-desktop"),
        (["init", "--yes"], 3, "No client was found"),
    ],
)
def test_nothing_to_do_and_what_is_wrong_in_the_call_are_said(
    home: Path, arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    out = capsys.readouterr()
    assert says in out.out + out.err


@for_each_row(
    ("system", "variables", "places"),
    [
        ("linux", {}, [".config/Claude", ".config/Code/User/mcp.json", ".config/zed/settings.json"]),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, ["/x/Claude", "/x/Code/User/mcp.json", "/x/zed/settings.json"]),
        (
            "macos",
            {"XDG_CONFIG_HOME": "/x"},
            [
                "Library/Application Support/Claude",
                "Library/Application Support/Code/User/mcp.json",
                ".config/zed/settings.json",
            ],
        ),
        (
            "windows",
            {},
            [f"AppData/Roaming/{name}" for name in ("Claude", "Code/User/mcp.json", "Zed/settings.json")],
        ),
        ("windows", {"APPDATA": "/r"}, ["/r/Claude", "/r/Code/User/mcp.json", "/r/Zed/settings.json"]),
    ],
)  # fmt: skip
def test_each_system_has_its_places(system: OperatingSystem, variables: Mapping[str, str], places: list[str]) -> None:
    home = Path("/home/ada")
    clients = {
        client.name: client
        for client in known_mcp_client_programs(
            ClientConfigurationPaths(home, system, variables), McpServerEntry(["m"], {})
        )
    }
    assert list(clients) == CLIENTS
    desktop = clients["claude-desktop"].files[0].path.parent
    found = [desktop, clients["vscode"].files[0].path, clients["zed"].files[0].path]
    assert found == [home / place for place in places]
    assert clients["codex"].files[0].path == home / ".codex" / "config.toml"
    assert clients["claude-code"].files[0].path == home / ".claude.json"


def test_variables_move_the_folders_of_claude_code_and_codex() -> None:
    moved = ClientConfigurationPaths(Path("/home/ada"), "linux", {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/d"})
    files = [
        file.path for client in known_mcp_client_programs(moved, McpServerEntry(["m"], {}))[:3] for file in client.files
    ]
    assert [str(path) for path in files if path.parts[1] != "home"] == [
        "/c/.claude.json", "/c/settings.json", "/d/config.toml",
    ]  # fmt: skip


def test_hooks_are_the_plugin_s_with_the_path_being_and_folder_of_this_installation() -> None:
    plugin = json.loads((ROOT / "plugin" / "hooks" / "hooks.json").read_text())["hooks"]
    entry = McpServerEntry(["/opt/a b/madeleine"], {"MADELEINE_BEING": "Zoé", "MADELEINE_DATA_DIR": "/d"})
    own = claude_code_hooks_by_event(entry)
    assert list(own) == list(plugin)
    for event, groups in own.items():
        [theirs], [ours] = ([hook["command"] for hook in group[0]["hooks"]] for group in (plugin[event], groups))
        words = shlex.split(ours)
        assert words == ["/opt/a b/madeleine", *shlex.split(theirs)[1:], "--being", "Zoé", "--data-dir", "/d"]
        assert build_command_line_parser().parse_args(words[1:]).being == "Zoé"


def test_what_uvx_has_made_is_started_by_uvx_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is gone with the cache."""
    monkeypatch.setattr(sys, "prefix", "/root/.cache/uv/archive-v0/Xq3/")
    monkeypatch.setattr(shutil, "which", lambda name: f"/opt/{name}")
    assert server_start_command_line() == ["/opt/uvx", "madeleine-memory"]


def test_every_client_has_its_paste_in_the_documents(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "clients.md").read_text()
    for client in known_mcp_client_programs(ClientConfigurationPaths(home, "linux", {}), McpServerEntry(["m"], {})):
        assert f"## {client.title}\n" in text
        assert f"`{client.name}`" in text
        assert main(["config", "--client", client.name]) == 0
    assert capsys.readouterr().out.count("MADELEINE_BEING") == len(CLIENTS)
