"""How much of what people say is worth a question to a model, and whether what matters is among it (spec H6).

    python -m benchmarks.worth FOLDER

Of each evidence-labelled set: the share of the people's turns that `should_remember` takes, and of those that hold the
answer to a question.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.sets import Document, names, read
from madeleine.memory.rules.storing.worth import should_remember


def by_a_person(document: Document, set_name: str) -> bool:
    """Both sides of LoCoMo are people; elsewhere every other turn is the assistant's."""
    if set_name.startswith("locomo"):
        return True
    if set_name.startswith("longmemeval"):
        return document.id.rsplit("#", 1)[-1].isdigit() and int(document.id.rsplit("#", 1)[-1]) % 2 == 0
    return document.text.lower().startswith("user")


def words_of(document: Document) -> str:
    """Without who says it."""
    speaker, colon, rest = document.text.partition(": ")
    return rest if colon and len(speaker) <= 30 else document.text


def measure(folder: Path, set_name: str) -> tuple[int, float, int, float]:
    """(turns, share taken, turns with an answer, share taken)"""
    said: dict[str, bool] = {}
    telling: set[str] = set()
    for unit in read(folder, set_name):
        gold = {id_ for query in unit.queries for id_ in query.gold}
        for document in unit.documents:
            if by_a_person(document, set_name):
                words = words_of(document)
                said[words] = said[words] if words in said else should_remember(words, "")[0]
                telling |= {words} if document.id in gold else set()
    return len(said), share(said.values()), len(telling), share(said[words] for words in telling)


def share(taken: Iterable[bool]) -> float:
    found = list(taken)
    return sum(found) / max(1, len(found))


def main() -> None:
    folder = Path(sys.argv[1])
    for name in names(folder):
        turns, all_taken, telling, telling_taken = measure(folder, name)
        if telling:
            print(f"{name}: {turns:,} turns, {all_taken:.1%} taken; {telling:,} that matter, {telling_taken:.1%} taken")


if __name__ == "__main__":
    main()
