"""Passages without a model: scenes of a session and a day are joined, word for word and in their order (spec L3).

So is what has faded and nobody has decided about, what a mind lets go of (❹), and what a summary stands for: memory
stays bounded whoever is there, and what was told is still found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from madeleine.memory.model import Memory, MemoryId
from madeleine.memory.rules.dynamics.importance import CYCLES_DYING_MEMORY_AWAITS_DECISION
from madeleine.memory.rules.ranking.turns import is_said_by_assistant
from madeleine.patrol.deciding.requests import DecisionRequest, absorbed_texts, offered_memory_from_memory

MAX_FADED_EPISODES_JOINED_PER_PATROL = 500
"""Faded episodes joined in one patrol."""
MAX_PASSAGES, MAX_OVERDUE_SESSIONS_READ = 100, 300
"""Of sessions beyond the threshold, in one patrol."""
MAX_DAYS_SINCE_RECALL = CYCLES_DYING_MEMORY_AWAITS_DECISION
"""For as long after its last recall a memory stays as it is: what has come back is not joined in the same night."""
MAX_PASSAGE_BYTES, MAX_PASSAGE_MEMORIES = 850, 8
"""In UTF-8, of technical text some 256 tokens, as many as the default model reads: what comes later would have no part
in the passage's vector. At 1,100 bytes 42 % of BEAM's passages were longer, and 8 % of LoCoMo's."""
MAX_ASSISTANT_PASSAGE_BYTES = 1_700
"""Of what an assistant said, which tells at length what is known anyhow: two pieces of it fit, and it is seldom what is
asked for. So it takes no part in the passages of what its user told (ADR 80)."""
MAX_JOINABLE_SCENE_CHARS = 900
"""Of a scene that is joined. A longer one tells enough by itself."""


def compression_requests_with_passages(episodes: Sequence[Memory]) -> Iterator[tuple[DecisionRequest, str]]:
    """Requests to compress, with the passage that answers each."""
    for part, text in join_episodes_into_passages(episodes):
        offered = tuple(offered_memory_from_memory(memory, "compress") for memory in part)
        session_id, day = _session_and_day(part[0])
        yield DecisionRequest(kind="compress", memories=offered, session_id=session_id, date=day), text


def passages_of_summarised_scenes(memories: Sequence[Memory]) -> Iterator[tuple[list[Memory], str]]:
    """The scenes of each passage, and its text: of all of them, for a summary that hides a scene need not hold what it
    tells. What cannot be joined has a passage of its own."""
    joined: set[MemoryId] = set()
    for part, text in join_episodes_into_passages(memories):
        yield part, text
        joined |= {memory.id for memory in part}
    for memory in memories:
        if memory.id not in joined:
            yield [memory], _passage_text([memory])


def join_episodes_into_passages(memories: Sequence[Memory]) -> Iterator[tuple[list[Memory], str]]:
    """The scenes of each passage, two or more, and its text."""
    joinable = sorted(
        filter(is_joinable_episode, memories), key=lambda one: (_passage_group_key(one), _event_order_sort_key(one))
    )
    for _, group in itertools.groupby(joinable, key=_passage_group_key):
        for part in _memory_groups_forming_passages(list(group)):
            yield part, _passage_text(part)


def is_joinable_episode(memory: Memory) -> bool:
    return (
        is_episode_that_summaries_may_hide(memory)
        and len(memory.scene.action) <= MAX_JOINABLE_SCENE_CHARS
        and not (memory.compressed or memory.pinned)
    )


def is_episode_that_summaries_may_hide(memory: Memory) -> bool:
    """Not with a lesson, which is shown as such, nor what may supersede another, which is decided first."""
    is_current_episode = (memory.category, memory.truth, memory.valid_from) == ("episodic", "current", None)
    return is_current_episode and not (memory.lesson or memory.may_supersede)


def was_recalled_lately(memory: Memory, now: datetime) -> bool:
    return memory.last_activated is not None and now - memory.last_activated < timedelta(days=MAX_DAYS_SINCE_RECALL)


def _event_order_sort_key(memory: Memory) -> tuple[datetime, int, datetime]:
    """Turns of a day may have its date alone."""
    return memory.happened_at, memory.number, memory.created_at


def _session_and_day(memory: Memory) -> tuple[str, str]:
    return memory.provenance.session_id, memory.happened_at.date().isoformat()


def _passage_group_key(memory: Memory) -> tuple[str, ...]:
    """Only what is found in the same places, and kept for as long, becomes one passage (spec O2); without a session, by
    which scenes of a day belong together, only what is of one topic."""
    topic = "" if memory.provenance.session_id else memory.cluster_id or ""
    return (*_session_and_day(memory), memory.project or "", memory.level or "", topic)


def _memory_groups_forming_passages(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    """Two scenes or more each: what an assistant said, what others said, and of both what is left alone."""
    by_speaker = (
        ([one for one in memories if not is_said_by_assistant(one)], MAX_PASSAGE_BYTES),
        (list(filter(is_said_by_assistant, memories)), MAX_ASSISTANT_PASSAGE_BYTES),
    )
    parts = [part for told, most_bytes in by_speaker for part in _groups_within_passage_limits(told, most_bytes)]
    if all(told for told, _ in by_speaker):
        left = sorted((part[0] for part in parts if len(part) == 1), key=_event_order_sort_key)
        parts += _groups_within_passage_limits(left, MAX_PASSAGE_BYTES)
    yield from (part for part in parts if len(part) > 1)


def _groups_within_passage_limits(memories: Sequence[Memory], most_bytes: int) -> Iterator[list[Memory]]:
    part: list[Memory] = []
    size = 0
    for memory, line in zip(memories, _passage_lines(memories), strict=True):
        if part and (size + len(line.encode()) >= most_bytes or len(part) == MAX_PASSAGE_MEMORIES):
            yield part
            part, size = [], 0
        part.append(memory)
        size += len(line.encode()) + 1
    if part:
        yield part


def _passage_text(memories: Sequence[Memory]) -> str:
    return "\n".join(_passage_lines(memories))


def _passage_lines(memories: Sequence[Memory]) -> list[str]:
    """Each scene with all that it tells; of several people with who acts, as the passage has the names of all."""
    are_several = len({memory.scene.actors for memory in memories}) > 1
    return [
        (f"{actors}: " if are_several and (actors := _actors_unless_text_names_them(memory)) else "")
        + " ".join(" ".join(_texts_of_scene(memory)).split())
        for memory in memories
    ]


def _texts_of_scene(memory: Memory) -> Iterator[str]:
    """Its action first, then what stands beside it, and what it has absorbed."""
    scene = memory.scene
    yield scene.action
    yield from (f'"{line}"' for line in scene.dialogue)
    yield from (f"({text})" for text in (scene.setting, memory.feeling, *scene.sensory) if text)
    yield from absorbed_texts(scene)


def _actors_unless_text_names_them(memory: Memory) -> str:
    """Its actors, unless its text begins with who speaks."""
    actors = ", ".join(memory.scene.actors)
    return "" if memory.scene.action.startswith(f"{actors}:") else actors
