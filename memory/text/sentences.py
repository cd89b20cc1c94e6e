"""Where a sentence ends, in any language (spec L1, step 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CLOSERS = "\"'”’»›)\\]}*_`」』）】〉》〕"
_END = re.compile(
    # The full stops of scripts that put spaces between sentences: Latin, Cyrillic, Greek, Arabic, Urdu, Armenian,
    # Devanagari, Ethiopic, Burmese, Khmer, Tibetan …
    rf"(?P<mark>[.!?…‽؟۔։।॥።፧။៕།]++)[{_CLOSERS}]*+(?P<space>\s++)?"
    # … and of those that do not.
    rf"|[。！？｡．︒⁇⁈⁉]++[…{_CLOSERS}]*+\s*+"
)
"""Also a mark without a space behind it, which ends nothing: so each sign is read once."""
_LAST_WORD = re.compile(r"(\w+)\.?$")
_SHORTENED = frozenset(
    """
    mr mrs ms dr prof st sr jr vs etc eg ie cf al no fig approx dept est inc ltd co corp vol ed rev gen capt
    bzw usw ca hr fr nr str abs bsp evtl ggf inkl zzgl mme mlle sra srta ud núm pág
    """.split()
)
"""Before a full stop these seldom end a sentence."""


def sentences(text: str) -> list[str]:
    """They join back to `text`; each but the last ends with the space behind it. A mark ends a sentence where a space
    and no small letter follow (in scripts without spaces, anywhere), but not behind an initial, an abbreviation or a
    day of the month."""
    found = []
    start = 0
    for end in _ends(text):
        found.append(text[start:end])
        start = end
    return [*found, text[start:]] if start < len(text) else found


def _ends(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        if match["mark"] and not match["space"]:
            continue
        end = match.end()
        if end == len(text) or (not text[end].islower() and not _shortened(text, match)):
            yield end


def _shortened(text: str, match: re.Match[str]) -> bool:
    if match["mark"] != ".":
        return False
    before = _LAST_WORD.search(text, max(0, match.start() - 12), match.start())
    if before is None:
        return False
    word = before[1]
    initial = len(word) == 1 and word.isupper() and word != "I"
    day = word.isdigit() and len(word) <= 2 and text[match.end()].isalpha()
    return initial or day or word.casefold() in _SHORTENED
