"""What the archive tells of a group without a model: key facts word for word, and anchors (spec O8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from madeleine.memory.text.sentences import split_sentences

MAX_DIGEST_KEY_FACTS = 20
MAX_FACT_CHARS, MAX_ANCHOR_CHARS = 200, 150

_KEY_FACT_SIGN_PATTERN = re.compile(r"\d|\w_\w|[a-z][A-Z]|[`\"“„«].+[`\"”“»]|\w[/@\\]\w|[=:]\s*\S")
"""Signs of a fact that other words would lose: a number, an identifier, a quotation, a path, a value."""


def make_extractive_digest(texts: Sequence[str], *, max_facts: int = MAX_DIGEST_KEY_FACTS) -> str:
    """The beginning of the first text, of the one in the middle and of the last, then key facts, a line each; no line
    twice. Every line stands in a text, shortened at most."""
    anchors = (
        [_shortened_text(texts[at], MAX_ANCHOR_CHARS) for at in sorted({0, len(texts) // 2, len(texts) - 1})]
        if texts
        else []
    )
    facts = list(dict.fromkeys(fact for text in texts for fact in extract_key_facts(text)))[:max_facts]
    return "\n".join(dict.fromkeys(line for line in (*anchors, *facts) if line))


def extract_key_facts(text: str) -> Iterator[str]:
    """The lines and sentences of a text that hold numbers, names of things, quotations or values."""
    for line in text.splitlines():
        for sentence in split_sentences(line):
            if _KEY_FACT_SIGN_PATTERN.search(sentence):
                yield _shortened_text(sentence, MAX_FACT_CHARS)


def _shortened_text(text: str, most: int) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= most else joined[: most - 1] + "…"
