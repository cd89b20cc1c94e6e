"""Skills over MCP (SEP-2640, extension `io.modelcontextprotocol/skills`): how to use this server, served by itself, and
what a being has learnt from failures (spec O11).

A skill is a folder with a `SKILL.md`, and each of its files a resource. Those that come with the installation hold
nothing of any being, and are read once; a lesson is a skill of one file.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from madeleine.memory.lessons.skill import render_lesson_as_skill, skill_name_of_lesson
from madeleine.memory.lessons.values import LessonWithOutcomeCounts
from madeleine.tools.arguments import excerpt_for_error

SKILLS_EXTENSION_ID = "io.modelcontextprotocol/skills"
SKILLS_FOLDER = Path(__file__).parents[2] / "plugin" / "skills"
"""Of the plugin, which the package holds as well."""
SKILL_SCHEME, SKILL_FILE = "skill://", "SKILL.md"
PACKAGED_SKILLS_CACHE_TTL_MS = 3_600_000
"""How long a client may take a skill as unchanged: it changes with the installation …"""
LESSON_SKILLS_CACHE_TTL_MS = 60_000
"""… and what is learnt with every failure."""


class GetSkillParams(types.RequestParams):
    uri: str


@dataclass(frozen=True, slots=True)
class SkillFile:
    uri: str
    text: str
    mime_type: str

    @property
    def listing_entry(self) -> dict[str, Any]:
        """As a skill's list of files has it."""
        content = self.text.encode()
        return {"uri": self.uri, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


@dataclass(frozen=True, slots=True)
class Skill:
    """`files`: all of the folder, `SKILL.md` first."""

    frontmatter: Mapping[str, str]
    files: tuple[SkillFile, ...]

    @property
    def uri(self) -> str:
        return self.files[0].uri

    @property
    def listing_entry(self) -> dict[str, Any]:
        """As `skills/list` and `skills/get` show it."""
        resources = [file.listing_entry for file in self.files]
        return {"uri": self.uri, "frontmatter": dict(self.frontmatter), "resources": resources}


@cache
def packaged_skills() -> tuple[Skill, ...]:
    return tuple(_read_skill(folder) for folder in sorted(SKILLS_FOLDER.iterdir()) if (folder / SKILL_FILE).is_file())


def _read_skill(folder: Path) -> Skill:
    def files() -> Iterator[SkillFile]:
        paths = (path for path in folder.rglob("*") if path.is_file())
        for path in sorted(paths, key=lambda path: (path.name != SKILL_FILE, path)):
            uri = f"skill://{folder.name}/{path.relative_to(folder).as_posix()}"
            mime_type = "text/markdown" if path.suffix == ".md" else mimetypes.guess_type(path)[0] or "text/plain"
            # Decoded here, not by `read_text`: ends of lines are part of the digest.
            yield SkillFile(uri, path.read_bytes().decode(), mime_type)

    found = tuple(files())
    return Skill(frontmatter_fields(found[0].text), found)


def frontmatter_fields(text: str) -> dict[str, str]:
    """The YAML between the first two lines `---`, of which our skills use the simplest form: a key and a text a line,
    plain or in quotation marks as in JSON."""
    lines = iter(text.splitlines()[1:])
    pairs = (line.partition(": ") for line in iter(lambda: next(lines, "---"), "---"))
    return {key: json.loads(value) if value.startswith('"') else value for key, _, value in pairs}


def skill_of_lesson(learnt: LessonWithOutcomeCounts) -> Skill:
    text = render_lesson_as_skill(learnt)
    file = SkillFile(f"skill://{skill_name_of_lesson(learnt)}/{SKILL_FILE}", text, "text/markdown")
    return Skill(frontmatter_fields(text), (file,))


def list_skills(lessons: Sequence[Skill] = ()) -> dict[str, Any]:
    """The result of `skills/list`. `lessons`: of the caller's being."""
    return _add_cache_fields_to_result(
        {"skills": [skill.listing_entry for skill in (*packaged_skills(), *lessons)]}, of_being=bool(lessons)
    )


def skills_get_result(uri: str, lessons: Sequence[Skill] = ()) -> dict[str, Any]:
    """The result of `skills/get`. Raises `MCPError` if there is no such skill."""
    for skill in (*packaged_skills(), *lessons):
        if skill.uri == uri:
            return _add_cache_fields_to_result({"skill": skill.listing_entry}, of_being=skill in lessons)
    raise MCPError(types.INVALID_PARAMS, "There is no such skill", {"uri": excerpt_for_error(uri)})


def _add_cache_fields_to_result(result: dict[str, Any], *, of_being: bool) -> dict[str, Any]:
    ttl, scope = (LESSON_SKILLS_CACHE_TTL_MS, "private") if of_being else (PACKAGED_SKILLS_CACHE_TTL_MS, "public")
    return {"resultType": "complete", **result, "ttlMs": ttl, "cacheScope": scope}


def skill_resources() -> list[types.Resource]:
    """Each `SKILL.md`, as `resources/list` shows it; the other files are named by the skill."""
    return [
        types.Resource(
            uri=skill.uri,
            name=skill.frontmatter["name"],
            description=skill.frontmatter["description"],
            mime_type=skill.files[0].mime_type,
            size=skill.files[0].listing_entry["size"],
        )
        for skill in packaged_skills()
    ]


def find_skill_file_by_uri(uri: str, skills: Sequence[Skill] | None = None) -> SkillFile | None:
    """Among the installed skills by default."""
    among = packaged_skills() if skills is None else skills
    return next((file for skill in among for file in skill.files if file.uri == uri), None)
