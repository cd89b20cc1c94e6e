"""How long what a caller stores is kept, and in which project it works (spec O2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Memory, MemoryLevel, Scope

MAX_PROJECT_NAME_CHARS = 200
_LEVELS_SHORTEST_KEPT_FIRST: tuple[MemoryLevel, ...] = get_args(MemoryLevel)
"""From the shortest."""


class MemoryLevelKeepsNothing(InvalidInput):
    """The level of the being keeps nothing."""

    def __init__(self) -> None:
        super().__init__(
            "This connection keeps no memory (MADELEINE_LEVEL is none). Nothing was stored; recall works as ever."
        )


@dataclass(frozen=True, slots=True)
class MemoryLevelsOfBeings:
    """`level`: of beings that `beings` does not name. `project`: of calls that name none."""

    level: MemoryLevel = "persistent"
    beings: Mapping[str, MemoryLevel] = field(default_factory=dict)
    project: str = ""

    def apply_to_scope(self, scope: Scope) -> Scope:
        """With level none nothing leaves a trace: recalls are not counted."""
        level = self.beings.get(scope.being_id, self.level)
        counts = scope.count_activations and level != "none"
        return replace(scope, level=level, project=scope.project or self.project, count_activations=counts)

    def apply_to_unattended_scope(self, scope: Scope) -> Scope:
        """Of what reads conversations by itself: where nothing can be asked, it is kept for the session only."""
        own = self.apply_to_scope(scope)
        is_impossible = own.level == "none" or (own.level == "project" and not own.project)
        return replace(own, level="session") if is_impossible else own


def scope_at_level(scope: Scope, asked: MemoryLevel | None) -> Scope:
    """The scope of a call that asks for a level of its own, None for that of the connection. Raises `InvalidInput` if
    it asks for more than the connection keeps."""
    if asked is None:
        return scope
    if _LEVELS_SHORTEST_KEPT_FIRST.index(asked) > _LEVELS_SHORTEST_KEPT_FIRST.index(scope.level) > 0:
        raise InvalidInput(
            f"Nothing was stored. This connection keeps nothing beyond its {scope.level} (MADELEINE_LEVEL): leave out "
            f"level {asked}."
        )
    return replace(scope, level=min(asked, scope.level, key=_LEVELS_SHORTEST_KEPT_FIRST.index))


def memory_with_level_and_project_of_scope(memory: Memory, scope: Scope, superseded: Memory | None = None) -> Memory:
    """A new memory as the level and the project of the caller keep it; a version as the one that it supersedes, so that
    a chain is found as a whole. Raises `InvalidInput` where the level keeps nothing, or asks for a project."""
    if superseded is not None:
        return replace(memory, project=superseded.project, level=superseded.level)
    match scope.level:
        case "none":
            raise MemoryLevelKeepsNothing
        case "project" if not scope.project:
            raise InvalidInput(
                "Nothing was stored. It was to be kept for a project only (level, or MADELEINE_LEVEL), and no project "
                "is known: name it in the argument project, or set MADELEINE_PROJECT."
            )
        case "persistent":
            level = None
        case _:
            level = scope.level
    return replace(memory, project=scope.project or None, level=level)
