"""The manifests by which other programs find and start this one: each says the same as `pyproject.toml`."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from madeleine.server import __version__
from madeleine.server.mcp.skills import SKILLS_FOLDER, packaged_skills
from tests.packaging.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
OWNER = REPOSITORY.split("/")[-2]


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


CLAUDE_PLUGIN, AGENT_PLUGIN = read("plugin/.claude-plugin/plugin.json"), read("plugin/plugin.json")
MARKETPLACE, SERVER = read(".claude-plugin/marketplace.json"), read("server.json")
BUNDLE = read("packaging/mcpb/manifest.json")
BUNDLE_PROJECT = tomllib.loads((ROOT / "packaging/mcpb/pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_all_manifests_have_the_version_of_the_project() -> None:
    [image_version] = re.findall(r'image\.version="([^"]+)"', DOCKERFILE)
    versions = {
        "pyproject.toml": PROJECT["version"],
        "plugin/.claude-plugin/plugin.json": CLAUDE_PLUGIN["version"],
        "plugin/plugin.json": AGENT_PLUGIN["version"],
        "server.json": SERVER["version"],
        "its package": SERVER["packages"][0]["version"],
        "packaging/mcpb/manifest.json": BUNDLE["version"],
        "packaging/mcpb/pyproject.toml": BUNDLE_PROJECT["version"],
        "its dependency": BUNDLE_PROJECT["dependencies"][0].removeprefix(f"{PROJECT['name']}=="),
        "Dockerfile": image_version,
    }
    assert set(versions.values()) == {__version__}, versions


def test_all_manifests_name_the_same_repository_package_and_owner() -> None:
    assert CLAUDE_PLUGIN["repository"] == AGENT_PLUGIN["repository"] == SERVER["repository"]["url"] == REPOSITORY
    assert BUNDLE["repository"]["url"] == REPOSITORY
    assert f'image.source="{REPOSITORY}"' in DOCKERFILE
    assert SERVER["name"] == f"io.github.{OWNER}/{CLAUDE_PLUGIN['name']}"
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert SERVER["packages"][0]["identifier"] == PROJECT["name"]
    assert PROJECT["name"] in PROJECT["scripts"], "uvx runs the script of the package's name"
    assert len(SERVER["description"]) <= 100
    for file in ("README.md", "docs/clients.md", "plugin/README.md"):
        assert f"/plugin install madeleine --marketplace {OWNER}/madeleine" in (ROOT / file).read_text(encoding="utf-8")


def test_the_two_manifests_of_the_plugin_say_the_same() -> None:
    assert {name: CLAUDE_PLUGIN.get(name) for name in AGENT_PLUGIN if name != "$schema"} == {
        name: value for name, value in AGENT_PLUGIN.items() if name != "$schema"
    }
    [listed] = MARKETPLACE["plugins"]
    assert {name: CLAUDE_PLUGIN[name] for name in ("name", "description", "keywords")} == {
        name: listed[name] for name in ("name", "description", "keywords")
    }
    assert (ROOT / listed["source"] / "plugin.json").is_file()
    [own], [portable] = (each["mcpServers"].values() for each in (CLAUDE_PLUGIN, read("plugin/mcp.json")))
    assert (own["command"], own["args"]) == (portable["command"], portable["args"])
    assert own["command"] in PROJECT["scripts"]


def test_options_reach_the_server_under_the_names_that_hooks_have() -> None:
    [server] = CLAUDE_PLUGIN["mcpServers"].values()
    assert server["env"] == {
        f"CLAUDE_PLUGIN_OPTION_{name.upper()}": f"${{user_config.{name}}}" for name in CLAUDE_PLUGIN["userConfig"]
    }
    assert {value.removeprefix("MADELEINE_") for value in BUNDLE["server"]["mcp_config"]["env"]} == {
        name.upper() for name in BUNDLE["user_config"]
    }


def test_skills_are_served_whole_and_their_frontmatter_is_plain_enough_to_be_read_without_yaml() -> None:
    """The SDK's client compares it as YAML (`test_validators.py`)."""
    assert [skill.frontmatter["name"] for skill in packaged_skills()] == ["using-madeleine"]
    for skill in packaged_skills():
        _, frontmatter, _ = skill.files[0].text.split("---\n", 2)
        assert frontmatter == "".join(f"{key}: {value}\n" for key, value in skill.frontmatter.items())
        assert all(re.fullmatch(r"[A-Za-z](?:(?!: | #).)*", value) for value in skill.frontmatter.values())
        folder = SKILLS_FOLDER / skill.frontmatter["name"]
        assert sum(path.is_file() for path in folder.rglob("*")) == len(skill.files)
