"""A mind of rules that decides all that a patrol offers, as the guidance tells it, in place of a language model.

It merges what says the same in nearly the same words, keeps each dying memory that tells something that may still hold,
and lets small talk die. A part of a large cluster is what shares its most telling word. It never supersedes: the rules
cannot tell, and the guidance then asks for the offer's id alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from benchmarks.dynamics.rule_based_agent import repeated, words, write_diary
from madeleine.memory.model import MemoryId
from madeleine.memory.rules.excerpts import most_telling_sentences
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.sentences import split_sentences
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.requests import DecisionRequest, MemoryInDecisionRequest

MIN_IMPORTANCE_OF_KEPT_MEMORY = 0.7
MIN_TELLING_WORDS = 8
"""Words besides stop words from which a statement is more than small talk."""
MAX_SUMMARY_CHARS = 400
MIN_PART_SIZE, MIN_LEFT, MAX_PARTS = 3, 2, 3


def decide(requests: Sequence[DecisionRequest]) -> list[AgentDecision]:
    return [_decide(request) for request in requests]


def _decide(request: DecisionRequest) -> AgentDecision:
    match request.kind:
        case "consolidate":
            return _consolidate(request)
        case "split":
            return AgentDecision(offer=request.id, parts=parts(request.cluster, request.memories))
        case "diary":
            return write_diary(request)
        case "compress":
            return AgentDecision(offer=request.id, summary=extract_summary(request.memories))
        case "repair":
            return AgentDecision(offer=request.id, text=request.note)
        case "supersede":
            return AgentDecision(offer=request.id)


def _consolidate(request: DecisionRequest) -> AgentDecision:
    memories = request.memories_to_decide
    usable = [
        memory
        for memory in memories
        if not memory.pinned and memory.truth == "current" and not request.other_parts_of_text(memory.id)
    ]
    groups = repeated(usable)
    merged = {memory.id for group in groups for memory in group}
    dying = [memory for memory in memories if memory.status == "dying" and memory.id not in merged]
    return AgentDecision(
        offer=request.id,
        merges=[[memory.id for memory in reversed(group)] for group in groups],
        make_dead=[memory.id for memory in dying if not may_still_hold(memory)],
        keep=[memory.id for memory in dying if may_still_hold(memory)],
    )


def may_still_hold(memory: MemoryInDecisionRequest) -> bool:
    """A lesson, a preference, what was rated important, or what `still_holds`."""
    if (
        memory.pinned
        or memory.lesson
        or memory.category == "procedural"
        or memory.importance >= MIN_IMPORTANCE_OF_KEPT_MEMORY
    ):
        return True
    return still_holds(memory.text)


@lru_cache(maxsize=20_000)
def still_holds(text: str) -> bool:
    """Whether it states, besides its questions, a number, a name, or something of some length."""
    stated = " ".join(sentence for sentence in split_sentences(text) if not AnalysedText(sentence).is_question)
    reading = AnalysedText(stated)
    return (
        reading.mentions_number_or_date or reading.contains_recognised_name or len(words(stated)) >= MIN_TELLING_WORDS
    )


def extract_summary(memories: Sequence[MemoryInDecisionRequest]) -> str:
    """Of the scenes that are more than small talk the two or three most telling sentences, as the guidance asks; what
    is left out stands in passages."""
    memories = [memory for memory in memories if still_holds(memory.text)] or memories
    return most_telling_sentences("\n".join(memory.text for memory in memories), MAX_SUMMARY_CHARS)


def parts(cluster: str, memories: Sequence[MemoryInDecisionRequest]) -> list[list[MemoryId]]:
    """Up to three parts: a name, then the ids of the memories that share its word, each in one part only."""
    left = {memory.id: words(memory.text) - words(cluster) for memory in memories}
    found: list[list[MemoryId]] = []
    while len(found) < MAX_PARTS:
        sharing: dict[str, list[MemoryId]] = defaultdict(list)
        for id_, of_memory in left.items():
            for word in of_memory:
                sharing[word].append(id_)
        most = (len(left) - MIN_LEFT, len(memories) // 2)
        usable = {word: ids for word, ids in sharing.items() if MIN_PART_SIZE <= len(ids) <= min(most)}
        if not usable:
            break
        word = max(usable, key=lambda word: (len(usable[word]), len(word), word))
        found.append([MemoryId(f"About {word}"), *usable[word]])
        left = {id_: of_memory for id_, of_memory in left.items() if id_ not in usable[word]}
    return found
