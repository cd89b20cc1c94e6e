"""Passages without a model: what has faded, and nobody has decided about, is joined by session and day (spec L3).

A passage holds its scenes word for word, in their order. Memory stays bounded whoever is there, and what was told is
still found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from madeleine.memory.model import Memory
from madeleine.patrol.deciding.requests import DecisionRequest, offered_memory

MAX_FADED_EPISODES = 500
"""Faded episodes joined in one patrol."""
MAX_PASSAGES, MAX_OVERDUE_SESSIONS_READ = 100, 100
"""Of sessions beyond the threshold, in one patrol."""
MAX_PASSAGE_CHARS, MAX_PASSAGE_MEMORIES = 2_000, 8
"""Eight turns of talk have some 1,000 characters."""
MAX_JOINED_CHARS = 900
"""Of a scene that is joined: any two fit into a passage. A longer one tells enough by itself."""


def passage_requests(episodes: Sequence[Memory]) -> Iterator[tuple[DecisionRequest, str]]:
    """Requests to compress, with the passage that answers each, of two scenes or more. `episodes`: in the order in
    which they happened."""
    by_session = sorted(episodes, key=_session_and_day)
    for (session_id, day), group in itertools.groupby(by_session, key=_session_and_day):
        for part in _parts(list(group)):
            if len(part) > 1:
                offered = tuple(offered_memory(memory, "compress") for memory in part)
                request = DecisionRequest(kind="compress", memories=offered, session_id=session_id, date=day)
                yield request, "\n".join(_lines(part))


def can_be_joined(memory: Memory) -> bool:
    """A lesson is shown as such, and what may be superseded is decided first."""
    return len(memory.scene.action) <= MAX_JOINED_CHARS and not memory.lesson and memory.may_supersede is None


def _session_and_day(memory: Memory) -> tuple[str, str]:
    return memory.provenance.session_id, memory.happened_at.date().isoformat()


def _parts(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    part: list[Memory] = []
    size = 0
    for memory, line in zip(memories, _lines(memories), strict=True):
        if part and (size + len(line) >= MAX_PASSAGE_CHARS or len(part) == MAX_PASSAGE_MEMORIES):
            yield part
            part, size = [], 0
        part.append(memory)
        size += len(line) + 1
    if part:
        yield part


def _lines(memories: Sequence[Memory]) -> list[str]:
    """Each scene with its feeling; of several people with who acts, as the passage has the names of all."""
    are_several = len({memory.scene.actors for memory in memories}) > 1
    return [
        (f"{', '.join(memory.scene.actors)}: " if are_several and memory.scene.actors else "")
        + " ".join(memory.scene.action.split())
        + (f" ({memory.feeling})" if memory.feeling else "")
        for memory in memories
    ]
