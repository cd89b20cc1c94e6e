"""Any amount of made-up text: prose, headings, lists and code, in several languages. Seeded; for speed benchmarks,
never for quality."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.made_up_sentences import PLACES, TOWNS, any_sentence

_ADJECTIVES = (
    "quiet stubborn narrow golden hollow restless crooked patient frozen borrowed distant ordinary fragile enormous "
    "silver muddy ancient electric invisible careful bitter hidden rusty gentle sudden northern empty velvet broken"
).split()
_NOUNS = (
    "lantern harbour orchard engine ledger violin glacier kitchen satellite bridge archive compass workshop island "
    "telescope market factory library reservoir theatre airport monastery laboratory vineyard tunnel hospital museum "
    "garden railway printer database protocol compiler router scheduler cache index turbine battery sensor antenna"
).split()
_VERBS = (
    "measures supports replaces surrounds feeds controls protects delays connects describes limits powers follows "
    "resembles hides contains requires explains delivers observes"
).split()
_CLAUSES = (
    "although nobody has ever checked|which surprised the whole committee|as the older maps already showed"
    "|unless the temperature falls below zero|when the second shift begins|because the contract says so"
    "|except on the last Sunday of the month|after which the work was stopped|so that visitors can see it from the road"
).split("|")
_FOREIGN = (
    "昨日は図書館で古い地図を探した。司書の田中さんが手伝ってくれた。",
    "Вчера мы долго шли вдоль реки и почти не разговаривали.",
    "La bibliothèque ferme à dix-huit heures, sauf le jeudi.",
    "Der Zug nach Basel hatte zwanzig Minuten Verspätung.",
)


def pages(seed: int) -> Iterator[str]:
    """Yield paragraphs without end, each followed by a blank line."""
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        kind = rng.random()
        if kind < 0.06:
            yield f"## {_phrase(rng).title()}, part {number}\n\n"
        elif kind < 0.12:
            yield "".join(f"- {_statement(rng)}\n" for _ in range(rng.randrange(2, 9))) + "\n"
        elif kind < 0.16:
            yield _code(rng, number)
        elif kind < 0.19:
            yield f"{rng.choice(_FOREIGN)}\n\n"
        else:
            yield " ".join(_sentence(rng) for _ in range(rng.randrange(1, 12))) + "\n\n"


def _sentence(rng: random.Random) -> str:
    return any_sentence(rng).text() if rng.random() < 0.5 else _statement(rng)


def _statement(rng: random.Random) -> str:
    where = f" {rng.choice(PLACES)}" if rng.random() < 0.3 else f" in {rng.choice(TOWNS)}"
    clause = f", {rng.choice(_CLAUSES)}" if rng.random() < 0.5 else ""
    number = f" and {rng.randrange(3, 4_000)} others" if rng.random() < 0.3 else ""
    return f"The {_phrase(rng)} {rng.choice(_VERBS)} the {_phrase(rng)}{number}{where}{clause}."


def _phrase(rng: random.Random) -> str:
    return f"{rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}"


def _code(rng: random.Random, number: int) -> str:
    noun, other = rng.sample(_NOUNS, 2)
    lines = "".join(f"    {noun}_{n} = {other}[{n}].{rng.choice(_VERBS)}({number})\n" for n in range(4))
    return f"```python\ndef {noun}_{number}({other}):\n{lines}    return {noun}_0\n```\n\n"
