"""Which answers count (ruling 10): first held against the offer, then against the memories as they are now.

An answer that breaks a rule of its offer is refused as a whole. What has changed since the offer is nobody's fault:
the parts that it concerns are left out, and the rest counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from madeleine.memory.language import Rejected
from madeleine.memory.model import LIVING, Memory, MemoryId
from madeleine.memory.rules.dynamics.decay import flagged
from madeleine.memory.text.sentences import sentences
from madeleine.patrol.deciding.answers import (
    Answer,
    Checked,
    Consolidation,
    Diary,
    Merge,
    Part,
    Split,
    Summary,
)
from madeleine.patrol.deciding.offer import Offer, text_of
from madeleine.patrol.deciding.offering import SPLIT_ABOVE

LONGEST_TEXT = 2_000
LONGEST_POINT = 300
LONGEST_NAME = 60
LINES = (3, 5)
POINTS = (3, 7)
SMALLEST_PART = 2
"""Memories of a new sub-cluster, and of what remains (spec P6 ❻)."""
COMPLAINTS = 5

_BULLET = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Present:
    """What is now. `memories`: those offered that still exist. Of the offer's cluster, for split: whether it is a root,
    and how many active memories it has, 0 if it is gone."""

    memories: Mapping[MemoryId, Memory] = field(default_factory=dict)
    is_root: bool = False
    active: int = 0


def checked(answer: Answer, offer: Offer, present: Present) -> Checked | Rejected:
    """Both checks."""
    found = against_offer(answer, offer)
    return found if isinstance(found, Rejected) else against_present(found, offer, present)


# --- the offer --------------------------------------------------------------------------------------------------


def against_offer(answer: Answer, offer: Offer) -> Answer | Rejected:
    """The answer, its texts tidied, or what is wrong with it, up to five complaints at once."""
    answer = tidied(answer)
    complaints = list(dict.fromkeys(_complaints(answer, offer)))[:COMPLAINTS]
    return Rejected(" ".join(complaints)) if complaints else answer


def tidied(answer: Answer) -> Answer:
    match answer:
        case Consolidation():
            return answer
        case Split():
            return Split(tuple(Part(" ".join(part.name.split()), part.memories) for part in answer.parts))
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


def _complaints(answer: Answer, offer: Offer) -> Iterator[str]:
    match answer:
        case Consolidation() if offer.kind == "consolidate":
            yield from _of_consolidation(answer, offer)
        case Split() if offer.kind == "split":
            yield from _of_split(answer, offer)
        case Diary() if offer.kind == "diary":
            yield from _of_diary(answer)
        case Summary() if offer.kind == "compress":
            yield from _of_text("summary", answer.summary, LONGEST_TEXT)
        case _:
            yield f"This offer is to {offer.kind}: answer that."


def _of_consolidation(answer: Consolidation, offer: Offer) -> Iterator[str]:
    absorbed = [id_ for merge in answer.merges for id_ in merge.absorbed]
    yield from _of_ids([*(merge.survivor for merge in answer.merges), *absorbed, *answer.make_dead], offer)
    for merge in answer.merges:
        if not merge.absorbed:
            yield f"The merge into {merge.survivor!r} absorbs nothing: name what it absorbs, or leave it out."
    offered = {memory.id: memory for memory in offer.memories}
    for id_ in (*absorbed, *answer.make_dead):
        if id_ in offered and offered[id_].pinned:
            yield f"Memory {id_!r} is pinned: it may be a survivor, never absorbed or in make_dead."
    for id_ in answer.make_dead:
        if id_ in offered and offered[id_].status != "dying":
            yield f"Memory {id_!r} is {offered[id_].status}: make_dead takes dying memories only."


def _of_split(answer: Split, offer: Offer) -> Iterator[str]:
    named = [id_ for part in answer.parts for id_ in part.memories]
    yield from _of_ids(named, offer)
    # By their numbers: a complaint goes into a prompt and a report, where no name that somebody made up belongs.
    names = Counter(part.name.casefold() for part in answer.parts) + Counter([offer.cluster.casefold()])
    for number, part in enumerate(answer.parts, start=1):
        yield from _of_text(f"The name of part {number}", part.name, LONGEST_NAME)
        if len(set(part.memories)) < SMALLEST_PART:
            yield f"Part {number} has fewer than {SMALLEST_PART} memories: add some, or leave it out."
        if part.name and names[part.name.casefold()] > 1:
            yield f"The name of part {number} is taken: give each part one of its own, other than the cluster's."
    if answer.parts and len(offer.memories) - len(set(named)) < SMALLEST_PART:
        yield f"At least {SMALLEST_PART} of the memories shown must stay in no part: take some out, or a whole part."


def _of_diary(answer: Diary) -> Iterator[str]:
    lines = answer.diary.splitlines()
    yield from _of_text("diary", answer.diary, LONGEST_TEXT)
    if not LINES[0] <= len(lines) <= LINES[1]:
        yield f"diary has {len(lines)} lines: write {LINES[0]} to {LINES[1]}, each on a line of its own."
    if not POINTS[0] <= len(answer.think_md) <= POINTS[1]:
        yield f"think_md has {len(answer.think_md)} points: write {POINTS[0]} to {POINTS[1]}."
    for point in answer.think_md:
        yield from _of_text("A point of think_md", point, LONGEST_POINT)


def _of_ids(named: Sequence[MemoryId], offer: Offer) -> Iterator[str]:
    offered = {memory.id for memory in offer.memories}
    for id_, times in Counter(named).items():
        if id_ not in offered:
            yield f"Memory {id_!r} was not offered: use only ids that stand in this offer."
        elif times > 1:
            yield f"Memory {id_!r} is named {times} times: name it once in the whole answer."


def _of_text(name: str, text: str, longest: int) -> Iterator[str]:
    if not text.strip():
        yield f"{name} is empty: write it."
    if len(text) > longest:
        yield f"{name} has {len(text):,} characters: write at most {longest:,}."
    if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        yield f"{name} holds a sign that cannot be stored: leave it out."


# --- the memories now -------------------------------------------------------------------------------------------


def against_present(answer: Answer, offer: Offer, present: Present) -> Checked | Rejected:
    """`answer` fits its offer (`against_offer`). A text cannot be left out in part: where a memory that it was made
    from was forgotten or changed, it is refused, for it might say what is to be gone."""
    match answer:
        case Consolidation():
            return _consolidation_now(answer, offer, present)
        case Split():
            return _split_now(answer, offer, present)
        case Diary() | Summary():
            return Rejected(reason) if (reason := _text_reason(offer, present)) else Checked(answer)
        case _:
            assert_never(answer)


def change_since(id_: MemoryId, offer: Offer, present: Present) -> str:
    """What happened to a memory of a cluster since it was offered, that takes it out of what was decided; "" if it
    lives, is where it was, and says what it said."""
    memory = present.memories.get(id_)
    if memory is None:
        return "was forgotten"
    if memory.status not in LIVING:
        return "is dead by now"
    if memory.cluster_id != offer.cluster_id:
        return "is in another cluster by now"
    return "says something else by now" if _says_other(memory, offer) else ""


def _says_other(memory: Memory, offer: Offer) -> bool:
    return any(one.id == memory.id and one.text != text_of(memory, offer.kind) for one in offer.memories)


def _consolidation_now(answer: Consolidation, offer: Offer, present: Present) -> Checked:
    merges: list[Merge] = []
    left_out: list[str] = []
    for merge in answer.merges:
        if reason := change_since(merge.survivor, offer, present):
            left_out.append(f"{merge.survivor} {reason}: nothing was merged into it.")
            continue
        absorbed: list[MemoryId] = []
        for id_ in merge.absorbed:
            if reason := _not_absorbable(id_, merge.survivor, offer, present):
                left_out.append(f"{id_} {reason}: it was not merged into {merge.survivor}.")
            else:
                absorbed.append(id_)
        if absorbed:
            merges.append(Merge(merge.survivor, tuple(absorbed)))
    make_dead: list[MemoryId] = []
    for id_ in answer.make_dead:
        if reason := change_since(id_, offer, present) or _not_fading(present.memories[id_]):
            left_out.append(f"{id_} {reason}: it was not made dead.")
        else:
            make_dead.append(id_)
    return Checked(Consolidation(tuple(merges), tuple(make_dead)), tuple(left_out))


def _not_absorbable(id_: MemoryId, survivor: MemoryId, offer: Offer, present: Present) -> str:
    if reason := change_since(id_, offer, present):
        return reason
    memory = present.memories[id_]
    if memory.pinned:
        return "is pinned by now"
    # What a summary stands for is not recalled; what is merged into it would not be either.
    hidden = present.memories[survivor].compressed and not memory.compressed
    return "would not be recalled, as its survivor has a summary that stands for it" if hidden else ""


def _not_fading(memory: Memory) -> str:
    if memory.pinned:
        return "is pinned by now"
    status = flagged(
        memory.status, importance=memory.importance, session_count=memory.session_count, pinned=memory.pinned
    )
    return "" if memory.status == status == "dying" else "was recalled since"


def _split_now(answer: Split, offer: Offer, present: Present) -> Checked:
    if not answer.parts:
        return Checked(answer)
    if present.is_root or present.active <= SPLIT_ABOVE:
        few = f"{offer.cluster} has {present.active} active memories by now: too few, so it was not split."
        return Checked(Split(), ("A root is never split." if present.is_root else few,))
    parts: list[Part] = []
    left_out: list[str] = []
    remaining = present.active
    for part in answer.parts:
        members: list[MemoryId] = []
        for id_ in part.memories:
            if reason := change_since(id_, offer, present) or _asleep(present.memories[id_]):
                left_out.append(f"{id_} {reason}: it was not moved to {part.name}.")
            else:
                members.append(id_)
        if len(members) < SMALLEST_PART:
            left_out.append(f"{part.name}: fewer than {SMALLEST_PART} of its memories are left, so it was not made.")
        elif remaining - len(members) < SMALLEST_PART:
            left_out.append(f"{part.name}: {offer.cluster} would keep too few memories, so it was not made.")
        else:
            remaining -= len(members)
            parts.append(Part(part.name, tuple(members)))
    return Checked(Split(tuple(parts)), tuple(left_out))


def _asleep(memory: Memory) -> str:
    return "" if memory.status == "active" else "is dying by now"


def _text_reason(offer: Offer, present: Present) -> str:
    for one in offer.memories:
        memory = present.memories.get(one.id)
        if memory is None or one.text != text_of(memory, offer.kind):
            happened = "was forgotten" if memory is None else "was changed"
            return f"Memory {one.id!r} {happened} since this was offered: nothing was written. Take a new offer."
        if offer.kind == "compress" and memory.pinned and not one.pinned:
            return f"Memory {one.id!r} was pinned since this was offered: nothing was written. Take a new offer."
        if offer.kind == "compress" and memory.compressed:
            return f"A summary stands for memory {one.id!r} already: nothing was written."
    return ""
