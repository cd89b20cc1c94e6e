"""The skill that teaches the use of the tools, and the protocol that serves it."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from madeleine.memory.lessons.values import Lesson, LessonWithOutcomeCounts
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.server.mcp.skills import (
    find_skill_file_by_uri,
    list_skills,
    packaged_skills,
    skill_of_lesson,
    skills_get_result,
)
from madeleine.tools.toolset import make_all_tools, to_mcp_tool
from tests.doubles import a_memory
from tests.rows import for_each_row


def names_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (value for value in schema.get("enum", []) if isinstance(value, str))
        for inner in schema.values():
            yield from names_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from names_in(inner)


def test_a_skill_names_no_tool_argument_or_field_that_there_is_not() -> None:
    tools = [to_mcp_tool(tool, 1_000) for tool in make_all_tools(random.Random(0))]
    known = {name for tool in tools for name in (tool.name, *names_in([tool.input_schema, tool.output_schema]))}
    known |= {*AgentDecision.model_fields, "kind", "guidance", "earlier", "resembles", "may_supersede", "not_kept"}
    for skill in packaged_skills():
        for file in skill.files:
            code = re.findall(r"`([^`]+)`", file.text)
            named = {match[0] for text in code if (match := re.match(r"[a-z][a-z_]*(?=$|:)", text))}
            assert named - known == set(), file.uri
            assert len(named) > 5


def test_skills_are_listed_with_the_digest_and_size_of_each_file_and_found_by_uri() -> None:
    listing = list_skills()
    assert (listing["resultType"], listing["cacheScope"]) == ("complete", "public")
    for entry in listing["skills"]:
        assert skills_get_result(entry["uri"])["skill"] == entry
        assert entry["resources"][0]["uri"] == entry["uri"]
        for resource in entry["resources"]:
            file = find_skill_file_by_uri(resource["uri"])
            assert file
            content = file.text.encode()
            assert resource["size"] == len(content)
            assert resource["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"


@for_each_row("uri", ["", "skill://nothing/SKILL.md", "skill://using-madeleine/references/patrol.md"])
def test_what_is_no_skill_is_refused(uri: str) -> None:
    with pytest.raises(MCPError, match="no such skill"):
        skills_get_result(uri)
    assert find_skill_file_by_uri("skill://using-madeleine/../../etc/passwd") is None


def test_a_lesson_is_a_skill_of_one_file_that_only_its_being_may_keep() -> None:
    """spec O11"""
    lesson = Lesson(discovery='The "blue" cluster has no GPU', condition="A GPU job", action="Use green")
    skill = skill_of_lesson(LessonWithOutcomeCounts(memory=a_memory("x"), lesson=lesson))
    listing = list_skills([skill])
    assert (listing["cacheScope"], listing["skills"][-1]["uri"]) == ("private", skill.uri)
    assert skill.frontmatter["description"] == 'The "blue" cluster has no GPU. Use when: A GPU job'
    assert skills_get_result(skill.uri, [skill])["cacheScope"] == "private"
    assert skills_get_result(packaged_skills()[0].uri, [skill])["cacheScope"] == "public"
    found = find_skill_file_by_uri(skill.uri, [skill])
    assert found is not None
    assert "Use green" in found.text
