"""Short ids: `m12` for a memory by its number, the first eight signs of any other id (ruling 23)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import SHORT_ID_CHARS, MemoryId, Scope, short_id_of_memory_number

IdKind = Literal["memory", "message", "note", "cluster", "run", "decision"]

_NUMBERED_SHORT_ID_PATTERN = re.compile(r"([mMsS])([1-9][0-9]{0,14})")
_UUID_PATTERN = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_BEGINNING_OF_UUID_PATTERN = re.compile(rf"[0-9a-f]{{{SHORT_ID_CHARS}}}")


class ShortIdLedger(Protocol):
    async def memory_id_by_number(self, scope: Scope, numbers: Sequence[int]) -> dict[int, MemoryId]:
        """The being's memories with these numbers."""

    async def number_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, int]:
        """The numbers of the being's memories with these ids."""

    async def ids_beginning_with_any(self, scope: Scope, kind: IdKind, beginnings: Sequence[str]) -> list[str]:
        """The being's ids of this kind that begin with any of these hexadecimal digits."""


@dataclass(frozen=True, eq=False)
class ShortIdTranslator:
    """Translates the ids that callers name, and those that answers show. Reads only."""

    ledger: ShortIdLedger

    async def full_ids(self, scope: Scope, kind: IdKind, ids: Iterable[str]) -> dict[str, str]:
        """Each id as it was given → the full id. An id that is already full, or belongs to nothing, stays as it is.

        Raises `InvalidInput` for a beginning that several ids have.
        """
        full = {id_: id_ for id_ in ids}
        if beginnings := [id_ for id_ in full if _BEGINNING_OF_UUID_PATTERN.fullmatch(id_)]:
            candidates = await self.ledger.ids_beginning_with_any(scope, kind, beginnings)
            for beginning in beginnings:
                matches = [id_ for id_ in candidates if id_.startswith(beginning)]
                if len(matches) > 1:
                    raise InvalidInput(f"{beginning!r} begins several ids. Give one in full: {', '.join(matches)}.")
                full |= dict.fromkeys([beginning] if matches else [], *matches)
        return full

    async def full_id(self, scope: Scope, kind: IdKind, id_: str) -> str:
        return (await self.full_ids(scope, kind, [id_]))[id_] if id_ else ""

    async def full_memory_id_by_given_id(self, scope: Scope, ids: Iterable[str]) -> dict[str, MemoryId]:
        """As `full_ids`, for memories: by number, by the beginning of the full id, or in full."""
        full = {id_: MemoryId(id_) for id_ in ids}
        numbered = {id_: match for id_ in full if (match := _NUMBERED_SHORT_ID_PATTERN.fullmatch(id_))}
        numbers = {
            id_: number
            for id_, match in numbered.items()
            if short_id_of_memory_number(number := int(match[2]), scope.being_id) == id_.lower()
        }
        if numbers:
            known = await self.ledger.memory_id_by_number(scope, list(numbers.values()))
            full |= {id_: known[number] for id_, number in numbers.items() if number in known}
        others = await self.full_ids(scope, "memory", [id_ for id_ in full if id_ not in numbered])
        return full | {id_: MemoryId(other) for id_, other in others.items()}

    async def text_with_short_ids(self, scope: Scope, text: str) -> str:
        """A message about the being's memories, which names them by their full ids, with short ones."""
        short_ids = await self.short_id_by_memory_id(scope, map(MemoryId, _UUID_PATTERN.findall(text)))
        return _UUID_PATTERN.sub(lambda match: short_ids[MemoryId(match[0])], text)

    async def short_id_by_memory_id(self, scope: Scope, ids: Iterable[MemoryId]) -> dict[MemoryId, str]:
        """The short id of each memory; of one that is gone, its full id."""
        named = list(dict.fromkeys(ids))
        numbers = await self.ledger.number_by_memory_id(scope, named) if named else {}
        return {
            id_: short_id_of_memory_number(numbers[id_], scope.being_id) if id_ in numbers else id_ for id_ in named
        }
