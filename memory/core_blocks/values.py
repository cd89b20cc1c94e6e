"""What a core block is (spec O12), and an edit of one."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from madeleine.memory.errors import CoreBlockEditConflict, InvalidInput

MAX_CORE_BLOCKS = 20
"""Of a being: each is part of every prompt."""
MAX_BLOCK_CHARS, DEFAULT_BLOCK_CHARS = 8_000, 2_000
MAX_CORE_BLOCK_NAME_CHARS = 60
CoreBlockEditKind = Literal["write", "replace", "append", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreBlock:
    """One version of a block; versions count from 1. `max_chars`: the most that its text may have. `description`: what
    the block is for. `client`: who wrote this version."""

    name: str
    version: int
    text: str
    description: str
    max_chars: int
    written_at: datetime
    client: str = ""

    @property
    def id(self) -> str:
        return audit_id_of_core_block(self.name)


def audit_id_of_core_block(name: str) -> str:
    """Id for the audit, which holds no names chosen by people."""
    return f"core_block/{hashlib.sha256(name.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedCoreBlockEdit:
    """`version`: the one that was read, 0 for a new block. `text`: the whole text, what is appended, or what takes the
    place of `old`, which must stand there once; "keep" changes only the rest. `description`, `max_chars`: None where
    they stay."""

    name: str
    version: int
    kind: CoreBlockEditKind = "write"
    text: str = ""
    old: str = ""
    description: str | None = None
    max_chars: int | None = None


def core_block_text_after_edit(before: str, edit: VersionedCoreBlockEdit) -> str:
    """Raises `InvalidInput` where `old` is not there exactly once."""
    match edit.kind:
        case "keep":
            return before
        case "write":
            return edit.text
        case "append":
            return f"{before}\n{edit.text}" if before else edit.text
        case "replace":
            count = before.count(edit.old) if edit.old else 0
            if count != 1:
                where = "is not there" if not count else f"is there {count} times"
                raise InvalidInput(
                    f"old {where} in the block {edit.name!r}. Nothing was changed: give a part that stands there once."
                )
            return before.replace(edit.old, edit.text)


def require_core_block_text_within_limit(text: str, max_chars: int, name: str) -> None:
    if len(text) > max_chars:
        raise InvalidInput(
            f"The block {name!r} would have {len(text):,} characters, and has room for {max_chars:,}. Nothing was "
            "changed: shorten it, and store the rest as memories, which search finds."
        )


def core_block_conflict_error(
    name: str, *, read: CoreBlock | None, edited: int, current: CoreBlock | None
) -> CoreBlockEditConflict:
    """The error for an edit of a version that is not the current one, with what was changed since. `read`: the version
    that was edited, None if there is none."""
    if current is None:
        return CoreBlockEditConflict(
            f"There is no core block {name!r} any more. Nothing was changed: write it with version 0 to have it again.",
            name=name,
            diff="",
        )
    diff = "\n".join(
        difflib.unified_diff(
            (read.text if read else "").splitlines(),
            current.text.splitlines(),
            f"version {read.version if read else 0}",
            f"version {current.version}",
            lineterm="",
        )
    )
    since = f"has changed since version {edited}" if read else f"is there already, at version {current.version}"
    return CoreBlockEditConflict(
        f"The core block {name!r} {since}. Nothing was changed: read the difference, and edit version "
        f"{current.version}.\n{diff or '(only its description or its limit has changed)'}",
        name=name,
        diff=diff,
    )
