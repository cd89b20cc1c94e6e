"""How a retelling may be spelt and say its past tense, by the lexicons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from madeleine.memory.text.lexicon import Lexicon


@lru_cache(maxsize=200)
def unify_spelling_and_past_tense(text: str, lexicons: tuple[Lexicon, ...]) -> str:
    """Kept, as a new text is compared with several others."""
    for lexicon in lexicons:
        text = _replace_perfect_by_preterite(text, lexicon)
        for pattern, spelling in _respellings(lexicon):
            text = pattern.sub(spelling, text)
    return text


@cache
def _respellings(lexicon: Lexicon) -> list[tuple[re.Pattern[str], str]]:
    respelt = lexicon.entries.get("respelt", {})
    return [(re.compile(pattern, re.IGNORECASE | re.MULTILINE), spelling) for pattern, spelling in respelt.items()]


def _replace_perfect_by_preterite(text: str, lexicon: Lexicon) -> str:
    """`hat es aufgeschrieben` is `schrieb es auf`, at the end of a main clause: there the two parts stand apart."""
    for pattern, preterites in _perfect_patterns_with_preterites(lexicon):

        def preterite(perfect: re.Match[str], preterites: Mapping[str, str] = preterites) -> str:
            between, separable, inseparable, participle = perfect.groups("")
            return f" {inseparable}{preterites[participle.lower()]}{between} {separable}"

        text = pattern.sub(preterite, text)
    return text


@cache
def _perfect_patterns_with_preterites(lexicon: Lexicon) -> list[tuple[re.Pattern[str], Mapping[str, str]]]:
    """For each auxiliary verb, in singular and plural: a pattern of the perfect, and preterites by participle."""
    perfect = lexicon.entries.get("perfect", {})
    return [
        (
            re.compile(
                rf"\b{auxiliary}\b( [^.,;:!?]{{0,200}}?) (?:({perfect['separable']})?ge|({perfect['inseparable']}))"
                rf"({'|'.join(preterites)})(?=\s*(?:[.,;:!?]|$))",
                re.IGNORECASE,
            ),
            preterites,
        )
        for name in ("have", "be")
        if perfect
        for number, auxiliary in enumerate(perfect[name].split(), start=1)
        for preterites in [
            {words[0]: words[number] for words in map(str.split, perfect[f"with_{name}"].strip().splitlines())}
        ]
    ]
