"""What a being has learnt from failures is served as skills, to itself alone (spec O11, SEP-2640)."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from tests.e2e.serving import call_tool, connected

LESSON = {
    "discovery": "The staging cluster has no GPU",
    "condition": "A GPU job is to run on staging",
    "action": "Use the training cluster",
    "confidence": 0.9,
}


@pytest.mark.slow
async def test_a_lesson_is_read_as_a_skill_by_its_being_alone(tmp_path: Path) -> None:
    uri = "skill://the-staging-cluster-has-no-gpu-m1/SKILL.md"
    async with connected(tmp_path, being="ada") as ada:
        failure = {"task": "Train the model on staging", "error": "no such device"}
        await call_tool(ada, "report_failure", **failure, lesson=LESSON)
        [skill] = (await ada.read_resource(uri)).contents
        assert isinstance(skill, TextResourceContents)
        assert skill.text.startswith("---\nname: the-staging-cluster-has-no-gpu-m1\n")
        assert "Use the training cluster" in skill.text
    async with connected(tmp_path, being="bo") as bo:
        with pytest.raises(MCPError, match="not found"):
            await bo.read_resource(uri)
