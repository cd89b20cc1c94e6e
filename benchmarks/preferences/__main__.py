"""Which sentences are labelled a preference (ruling 15), in each language of the lexicons.

    python -m benchmarks.preferences                        the sentences beside this file
    python -m benchmarks.preferences --draw FOLDER [SEED]   150 turns of the data sets that are labelled, to be judged

A sentence is labelled if `ingest` would make a procedural memory of it.
"""

from __future__ import annotations

import random
import sys
import tomllib
from pathlib import Path

from benchmarks.data_sets import names, read
from benchmarks.should_remember import by_a_person, without_speaker
from madeleine.memory.rules.storing.chunk_scoring import chunk_category
from madeleine.memory.text.reading import AnalysedText

KINDS = ("own", "about", "none")
DRAWN_TURNS = 150
DRAWN_SETS = ("locomo", "beam100k", "longmemeval")
PRINTED_TURN_CHARS = 500


def is_labelled(text: str) -> bool:
    return chunk_category(AnalysedText(text)) == "procedural"


def measure() -> None:
    languages = tomllib.loads((Path(__file__).parent / "sentences.toml").read_text("utf-8"))
    labelled = dict.fromkeys(KINDS, 0)
    total = dict.fromkeys(KINDS, 0)
    for language, kinds in languages.items():
        shares = []
        for kind in KINDS:
            sentences = kinds[kind].strip().splitlines()
            wrong = [sentence for sentence in sentences if is_labelled(sentence) == (kind == "none")]
            right = len(sentences) - len(wrong)
            labelled[kind] += right if kind != "none" else len(wrong)
            total[kind] += len(sentences)
            shares.append(f"{kind} {right}/{len(sentences)}")
            if wrong and "--verbose" in sys.argv:
                print(*(f"    {kind}: {sentence}" for sentence in wrong), sep="\n")
        print(f"{language}: {', '.join(shares)} right")
    preferences = [labelled[kind] for kind in KINDS[:2]]
    print(
        f"preferences labelled: {sum(preferences)}/{total['own'] + total['about']} "
        f"({labelled['own']}/{total['own']} in the first person, {labelled['about']}/{total['about']} in the third)\n"
        f"others labelled: {labelled['none']}/{total['none']}"
    )


def draw(folder: Path, seed: int) -> None:
    """Print a random sample of the people's turns that are labelled, or all where there are fewer."""
    turns = {
        (name, words)
        for name in names(folder)
        if name.startswith(DRAWN_SETS)
        for unit in read(folder, name)
        for document in unit.documents
        if by_a_person(document, name) and is_labelled(words := without_speaker(document))
    }
    print(f"{len(turns):,} different turns are labelled")
    for name, words in random.Random(seed).sample(sorted(turns), min(DRAWN_TURNS, len(turns))):
        print(f"[{name}] {' '.join(words.split())[:PRINTED_TURN_CHARS]}")


def main() -> None:
    if "--draw" in sys.argv:
        folder, *seed = sys.argv[sys.argv.index("--draw") + 1 :]
        draw(Path(folder), int(seed[0]) if seed else 1)
    else:
        measure()


if __name__ == "__main__":
    main()
