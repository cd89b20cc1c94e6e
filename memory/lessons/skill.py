"""A lesson as a skill in the Agent Skills format: a folder of the skill's name with a SKILL.md (spec O11)."""

from __future__ import annotations

import json
import re
import unicodedata

from madeleine.memory.lessons.values import LessonWithOutcomeCounts

MAX_SKILL_NAME_CHARS, MAX_SKILL_DESCRIPTION_CHARS = 64, 1_024
"""Of the format."""
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


def skill_name_of_lesson(learnt: LessonWithOutcomeCounts) -> str:
    """Lower-case words of the discovery and the memory's id: unique in its being, 1 to 64 signs, as the format asks."""
    plain = unicodedata.normalize("NFKD", learnt.lesson.discovery).encode("ascii", "ignore").decode().lower()
    words = _NOT_IN_NAME.sub("-", plain).strip("-")
    end = f"-{_NOT_IN_NAME.sub('', learnt.memory.short_id.lower())}"
    return f"{(words or 'lesson')[: MAX_SKILL_NAME_CHARS - len(end)].strip('-')}{end}"


def render_lesson_as_skill(learnt: LessonWithOutcomeCounts) -> str:
    """The SKILL.md: the first tier is its description, which is always read; the others its body."""
    lesson = learnt.lesson
    description = " ".join(f"{lesson.discovery.rstrip('.')}. Use when: {lesson.condition}".split())
    body = [f"# {_line(lesson.discovery)}", "", f"**When:** {_line(lesson.condition)}", ""]
    body += [f"**Do:** {_line(lesson.action)}", ""]
    if lesson.rationale:
        body += [f"**Why:** {_line(lesson.rationale)}", ""]
    if lesson.steps:
        body += ["## Steps", "", *(f"{number}. {_line(step)}" for number, step in enumerate(lesson.steps, start=1)), ""]
    front = [
        "---",
        f"name: {skill_name_of_lesson(learnt)}",
        f"description: {json.dumps(description[:MAX_SKILL_DESCRIPTION_CHARS], ensure_ascii=False)}",
        "---",
        "",
    ]
    return "\n".join([*front, *body])


def _line(text: str) -> str:
    return " ".join(text.split())
