"""A lesson as a skill in the Agent Skills format: a folder of the skill's name with a SKILL.md (spec O11)."""

from __future__ import annotations

import json
import re
import unicodedata

from madeleine.memory.lessons.values import LessonWithOutcomeCounts

MAX_SKILL_NAME_CHARS, MAX_SKILL_DESCRIPTION_CHARS = 64, 1_024
"""Of the format."""
_CHARS_NOT_IN_SKILL_NAME_PATTERN = re.compile(r"[^a-z0-9]+")


def skill_name_of_lesson(learnt: LessonWithOutcomeCounts) -> str:
    """Lower-case words of the discovery and the memory's id: unique in its being, 1 to 64 signs, as the format asks."""
    plain = unicodedata.normalize("NFKD", learnt.lesson.discovery).encode("ascii", "ignore").decode().lower()
    words = _CHARS_NOT_IN_SKILL_NAME_PATTERN.sub("-", plain).strip("-")
    end = f"-{_CHARS_NOT_IN_SKILL_NAME_PATTERN.sub('', learnt.memory.short_id.lower())}"
    return f"{(words or 'lesson')[: MAX_SKILL_NAME_CHARS - len(end)].strip('-')}{end}"


def render_lesson_as_skill(learnt: LessonWithOutcomeCounts) -> str:
    """The SKILL.md: the first tier is its description, which is always read; the others its body."""
    lesson = learnt.lesson
    description = " ".join(f"{lesson.discovery.rstrip('.')}. Use when: {lesson.condition}".split())
    body = [
        f"# {_collapse_whitespace(lesson.discovery)}",
        "",
        f"**When:** {_collapse_whitespace(lesson.condition)}",
        "",
    ]
    body += [f"**Do:** {_collapse_whitespace(lesson.action)}", ""]
    if lesson.rationale:
        body += [f"**Why:** {_collapse_whitespace(lesson.rationale)}", ""]
    if lesson.steps:
        body += [
            "## Steps",
            "",
            *(f"{number}. {_collapse_whitespace(step)}" for number, step in enumerate(lesson.steps, start=1)),
            "",
        ]
    front = [
        "---",
        f"name: {skill_name_of_lesson(learnt)}",
        f"description: {json.dumps(description[:MAX_SKILL_DESCRIPTION_CHARS], ensure_ascii=False)}",
        "---",
        "",
    ]
    return "\n".join([*front, *body])


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())
