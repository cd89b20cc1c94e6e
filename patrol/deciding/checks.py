"""Which answers count (ruling 10): first held against the request, then against the memories as they are now.

An answer that breaks a rule of its request is rejected as a whole. What has changed since the request is nobody's
fault: the parts that it concerns are left out, and the rest counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from madeleine.memory.language_model import Rejected
from madeleine.memory.model import LIVING, Memory, MemoryId
from madeleine.memory.rules.dynamics.importance import flagged
from madeleine.memory.text.sentences import sentences
from madeleine.patrol.deciding.answers import (
    MAX_POINT_CHARS,
    MAX_TEXT_CHARS,
    POINTS,
    Answer,
    Consolidation,
    Diary,
    Merge,
    NewCluster,
    Split,
    Summary,
)
from madeleine.patrol.deciding.requests import SPLIT_ABOVE_MEMORIES, DecisionRequest, offered_text

MAX_NAME_CHARS = 60
LINES = (3, 5)
MIN_PART_SIZE = 2
"""Memories of a new sub-cluster, and of what remains (spec P6 ❻)."""
MAX_COMPLAINTS = 5

_BULLET = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True)
class CurrentState:
    """`memories`: those of the request that still exist. Of the request's cluster, for split: whether it is a root, and
    how many active memories it has, 0 if it is gone."""

    memories: Mapping[MemoryId, Memory] = field(default_factory=dict)
    is_root: bool = False
    active: int = 0


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """What may be applied now. `left_out`: why parts of the answer may not, a sentence each: their memories have
    changed since the request."""

    answer: Answer
    left_out: tuple[str, ...] = ()


def check_answer(answer: Answer, request: DecisionRequest, current: CurrentState) -> CheckedAnswer | Rejected:
    """Both checks."""
    result = against_request(answer, request)
    return result if isinstance(result, Rejected) else against_current(result, request, current)


# --- the request ------------------------------------------------------------------------------------------------


def against_request(answer: Answer, request: DecisionRequest) -> Answer | Rejected:
    """The answer, its texts tidied, or what is wrong with it, up to five complaints at once."""
    answer = normalized_answer(answer)
    complaints = list(dict.fromkeys(_complaints(answer, request)))[:MAX_COMPLAINTS]
    return Rejected(" ".join(complaints)) if complaints else answer


def normalized_answer(answer: Answer) -> Answer:
    match answer:
        case Consolidation():
            return answer
        case Split():
            return Split(tuple(NewCluster(" ".join(part.name.split()), part.memories) for part in answer.parts))
        case Diary():
            points = (_BULLET.sub("", " ".join(point.split())) for point in answer.think_md)
            return Diary("\n".join(_lines(answer.diary)), tuple(point for point in points if point))
        case Summary():
            return Summary(answer.summary.strip())
        case _:
            assert_never(answer)


def _lines(text: str) -> list[str]:
    """A diary written in one line has its sentences for lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [sentence.rstrip() for sentence in sentences(lines[0])] if len(lines) == 1 else lines


def _complaints(answer: Answer, request: DecisionRequest) -> Iterator[str]:
    match answer:
        case Consolidation() if request.kind == "consolidate":
            yield from _consolidation_complaints(answer, request)
        case Split() if request.kind == "split":
            yield from _split_complaints(answer, request)
        case Diary() if request.kind == "diary":
            yield from _diary_complaints(answer)
        case Summary() if request.kind == "compress":
            yield from _text_complaints("summary", answer.summary, MAX_TEXT_CHARS)
        case _:
            yield f"This offer is to {request.kind}: answer that."


def _consolidation_complaints(answer: Consolidation, request: DecisionRequest) -> Iterator[str]:
    absorbed = [id_ for merge in answer.merges for id_ in merge.absorbed]
    yield from _id_complaints([*(merge.survivor for merge in answer.merges), *absorbed, *answer.make_dead], request)
    for merge in answer.merges:
        if not merge.absorbed:
            yield f"The merge into {merge.survivor!r} absorbs nothing: name what it absorbs, or leave it out."
    offered = {memory.id: memory for memory in request.memories}
    for id_ in (*absorbed, *answer.make_dead):
        if id_ in offered and offered[id_].pinned:
            yield f"Memory {id_!r} is pinned: it may be a survivor, never absorbed or in make_dead."
    for id_ in answer.make_dead:
        if id_ in offered and offered[id_].status != "dying":
            yield f"Memory {id_!r} is {offered[id_].status}: make_dead takes dying memories only."


def _split_complaints(answer: Split, request: DecisionRequest) -> Iterator[str]:
    named = [id_ for part in answer.parts for id_ in part.memories]
    yield from _id_complaints(named, request)
    # By their numbers: a complaint goes into a prompt and a report, where no name that somebody made up belongs.
    names = Counter(part.name.casefold() for part in answer.parts) + Counter([request.cluster.casefold()])
    for number, part in enumerate(answer.parts, start=1):
        yield from _text_complaints(f"The name of part {number}", part.name, MAX_NAME_CHARS)
        if len(set(part.memories)) < MIN_PART_SIZE:
            yield f"Part {number} has fewer than {MIN_PART_SIZE} memories: add some, or leave it out."
        if part.name and names[part.name.casefold()] > 1:
            yield f"The name of part {number} is taken: give each part one of its own, other than the cluster's."
    if answer.parts and len(request.memories) - len(set(named)) < MIN_PART_SIZE:
        yield f"At least {MIN_PART_SIZE} of the memories shown must stay in no part: take some out, or a whole part."


def _diary_complaints(answer: Diary) -> Iterator[str]:
    lines = answer.diary.splitlines()
    yield from _text_complaints("diary", answer.diary, MAX_TEXT_CHARS)
    if not LINES[0] <= len(lines) <= LINES[1]:
        yield f"diary has {len(lines)} lines: write {LINES[0]} to {LINES[1]}, each on a line of its own."
    if not POINTS[0] <= len(answer.think_md) <= POINTS[1]:
        yield f"think_md has {len(answer.think_md)} points: write {POINTS[0]} to {POINTS[1]}."
    for point in answer.think_md:
        yield from _text_complaints("A point of think_md", point, MAX_POINT_CHARS)


def _id_complaints(named: Sequence[MemoryId], request: DecisionRequest) -> Iterator[str]:
    offered = {memory.id for memory in request.memories}
    for id_, times in Counter(named).items():
        if id_ not in offered:
            yield f"Memory {id_!r} was not offered: use only ids that stand in this offer."
        elif times > 1:
            yield f"Memory {id_!r} is named {times} times: name it once in the whole answer."


def _text_complaints(name: str, text: str, longest: int) -> Iterator[str]:
    if not text.strip():
        yield f"{name} is empty: write it."
    if len(text) > longest:
        yield f"{name} has {len(text):,} characters: write at most {longest:,}."
    if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        yield f"{name} holds a sign that cannot be stored: leave it out."


# --- the memories now -------------------------------------------------------------------------------------------


def against_current(answer: Answer, request: DecisionRequest, current: CurrentState) -> CheckedAnswer | Rejected:
    """`answer` fits its request (`against_request`). A text cannot be left out in part: where a memory that it was made
    from was forgotten or changed, it is refused, for it might say what is to be gone."""
    match answer:
        case Consolidation():
            return _check_consolidation(answer, request, current)
        case Split():
            return _check_split(answer, request, current)
        case Diary() | Summary():
            return Rejected(reason) if (reason := _text_change(request, current)) else CheckedAnswer(answer)
        case _:
            assert_never(answer)


def change_since(id_: MemoryId, request: DecisionRequest, current: CurrentState) -> str:
    """What happened to a memory of a cluster since it was offered, that takes it out of what was decided; "" if it
    lives, is where it was, and says what it said."""
    memory = current.memories.get(id_)
    if memory is None:
        return "was forgotten"
    if memory.status not in LIVING:
        return "is dead by now"
    if memory.cluster_id != request.cluster_id:
        return "is in another cluster by now"
    return "says something else by now" if _says_otherwise(memory, request) else ""


def _says_otherwise(memory: Memory, request: DecisionRequest) -> bool:
    text = offered_text(memory, request.kind)
    offered = {one.id: one.text for one in request.memories}
    return offered.get(memory.id, text) != text


def _check_consolidation(answer: Consolidation, request: DecisionRequest, current: CurrentState) -> CheckedAnswer:
    merges: list[Merge] = []
    left_out: list[str] = []
    for merge in answer.merges:
        if reason := change_since(merge.survivor, request, current):
            left_out.append(f"{merge.survivor} {reason}: nothing was merged into it.")
            continue
        obstacles = {id_: _merge_obstacle(id_, merge.survivor, request, current) for id_ in merge.absorbed}
        if absorbed := _without_obstacle(obstacles, f"it was not merged into {merge.survivor}", left_out):
            merges.append(Merge(merge.survivor, absorbed))
    obstacles = {
        id_: change_since(id_, request, current) or _recalled_since(current.memories[id_]) for id_ in answer.make_dead
    }
    make_dead = _without_obstacle(obstacles, "it was not made dead", left_out)
    return CheckedAnswer(Consolidation(tuple(merges), make_dead), tuple(left_out))


def _without_obstacle(obstacles: Mapping[MemoryId, str], consequence: str, left_out: list[str]) -> tuple[MemoryId, ...]:
    """Adds a sentence to `left_out` for each memory with an obstacle, and returns the others."""
    left_out += [f"{id_} {obstacle}: {consequence}." for id_, obstacle in obstacles.items() if obstacle]
    return tuple(id_ for id_, obstacle in obstacles.items() if not obstacle)


def _merge_obstacle(id_: MemoryId, survivor: MemoryId, request: DecisionRequest, current: CurrentState) -> str:
    if reason := change_since(id_, request, current):
        return reason
    memory = current.memories[id_]
    if memory.pinned:
        return "is pinned by now"
    # What a summary stands for is not recalled; what is merged into it would not be either.
    hidden = current.memories[survivor].compressed and not memory.compressed
    return "would not be recalled, as its survivor has a summary that stands for it" if hidden else ""


def _recalled_since(memory: Memory) -> str:
    if memory.pinned:
        return "is pinned by now"
    status = flagged(
        memory.status, importance=memory.importance, session_count=memory.session_count, pinned=memory.pinned
    )
    return "" if memory.status == status == "dying" else "was recalled since"


def _check_split(answer: Split, request: DecisionRequest, current: CurrentState) -> CheckedAnswer:
    if not answer.parts:
        return CheckedAnswer(answer)
    if current.is_root or current.active <= SPLIT_ABOVE_MEMORIES:
        few = f"The cluster has {current.active} active memories by now: too few, so it was not split."
        return CheckedAnswer(Split(), ("A root is never split." if current.is_root else few,))
    parts: list[NewCluster] = []
    left_out: list[str] = []
    remaining = current.active
    # By their numbers: a report is kept, and the name may tell of what is forgotten later.
    for number, part in enumerate(answer.parts, start=1):
        obstacles = {id_: change_since(id_, request, current) or _dying(current.memories[id_]) for id_ in part.memories}
        members = _without_obstacle(obstacles, f"it was not moved to part {number}", left_out)
        if len(members) < MIN_PART_SIZE:
            left_out.append(f"Part {number}: fewer than {MIN_PART_SIZE} of its memories are left, so it was not made.")
        elif remaining - len(members) < MIN_PART_SIZE:
            left_out.append(f"Part {number}: the cluster would keep too few memories, so it was not made.")
        else:
            remaining -= len(members)
            parts.append(NewCluster(part.name, members))
    return CheckedAnswer(Split(tuple(parts)), tuple(left_out))


def _dying(memory: Memory) -> str:
    return "" if memory.status == "active" else "is dying by now"


def _text_change(request: DecisionRequest, current: CurrentState) -> str:
    for offered in request.memories:
        memory = current.memories.get(offered.id)
        if memory is None or offered.text != offered_text(memory, request.kind):
            happened = "was forgotten" if memory is None else "was changed"
            return f"Memory {offered.id!r} {happened} since this was offered: nothing was written. Take a new offer."
        if request.kind == "compress" and memory.pinned and not offered.pinned:
            return f"Memory {offered.id!r} was pinned since this was offered: nothing was written. Take a new offer."
        if request.kind == "compress" and memory.compressed:
            return f"A summary stands for memory {offered.id!r} already: nothing was written."
    return ""
