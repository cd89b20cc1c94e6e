"""How many turns `should_remember` takes, and whether the relevant turns are among them (spec H6).

    python -m benchmarks.should_remember FOLDER

For each data set: the share of the people's turns that `should_remember` takes, of all turns and of those that contain
the answer to a question.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.data_sets import Document, names, read
from madeleine.memory.rules.storing.worth_remembering import should_remember


def by_a_person(document: Document, set_name: str) -> bool:
    """Both sides of LoCoMo are people; elsewhere every other turn is the assistant's."""
    if set_name.startswith("locomo"):
        return True
    if set_name.startswith("longmemeval"):
        return document.id.rsplit("#", 1)[-1].isdigit() and int(document.id.rsplit("#", 1)[-1]) % 2 == 0
    return document.text.lower().startswith("user")


def without_speaker(document: Document) -> str:
    """The text without the speaker's name."""
    speaker, colon, words = document.text.partition(": ")
    return words if colon and len(speaker) <= 30 else document.text


def measure(folder: Path, set_name: str) -> tuple[int, float, int, float]:
    """(turns, share taken, relevant turns, share taken)"""
    taken: dict[str, bool] = {}
    relevant: set[str] = set()
    for unit in read(folder, set_name):
        gold = {id_ for query in unit.queries for id_ in query.gold}
        for document in unit.documents:
            if by_a_person(document, set_name):
                words = without_speaker(document)
                taken[words] = taken[words] if words in taken else should_remember(words, "")[0]
                relevant |= {words} if document.id in gold else set()
    return len(taken), share(taken.values()), len(relevant), share(taken[words] for words in relevant)


def share(taken: Iterable[bool]) -> float:
    decisions = list(taken)
    return sum(decisions) / max(1, len(decisions))


def main() -> None:
    folder = Path(sys.argv[1])
    for name in names(folder):
        turns, turns_taken, relevant, relevant_taken = measure(folder, name)
        if relevant:
            print(
                f"{name}: {turns:,} turns, {turns_taken:.1%} taken; {relevant:,} relevant, {relevant_taken:.1%} taken"
            )


if __name__ == "__main__":
    main()
