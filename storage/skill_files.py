"""Skills as files: one folder each, named as the skill, with a SKILL.md (spec O11)."""

from __future__ import annotations

from pathlib import Path


def write_skill_file(directory: Path, name: str, text: str) -> Path:
    """Write `directory/name/SKILL.md`, in place of an earlier one. Raises `OSError`."""
    folder = directory / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    new = folder / ".SKILL.md.new"
    new.write_text(text, encoding="utf-8")
    new.replace(path)
    return path
