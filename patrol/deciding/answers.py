"""What a mind decided, in memory ids, not yet checked."""

from __future__ import annotations

from dataclasses import dataclass

from madeleine.memory.model import MemoryId


@dataclass(frozen=True, slots=True)
class Merge:
    survivor: MemoryId
    absorbed: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """spec P6 ❹"""

    merges: tuple[Merge, ...] = ()
    make_dead: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    memories: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """New sub-clusters; what none of them names stays (spec P6 ❻)."""

    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Diary:
    """spec P8. Checked, `diary` has one line to a line and `think_md` its points without bullets."""

    diary: str
    think_md: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """spec L3"""

    summary: str


Answer = Consolidation | Split | Diary | Summary


@dataclass(frozen=True, slots=True)
class Checked:
    """What may be applied now. `left_out`: why parts of the answer may not, a sentence each: their memories have
    changed since they were offered."""

    answer: Answer
    left_out: tuple[str, ...] = ()
