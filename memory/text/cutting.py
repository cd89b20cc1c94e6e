"""The best place to cut a long text, so that both parts can be read alone."""

from __future__ import annotations

import re

from madeleine.memory.text.sentences import sentences

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_FENCE = re.compile(r"^[^\S\n]*(?:`{3,}|~{3,})", re.MULTILINE)
_SPACE = re.compile(r"\s+")
MIN_FILLED_SHARE = 0.5
"""Of the maximum length: a shorter part is not made for a better kind of cut."""


def last_break(text: str, most: int) -> int:
    """Position in (0, most]: behind the last paragraph that ends within `most` characters and outside a code block;
    else behind a line, a sentence, a word, whichever first lies in the second half; else `most`."""
    least = int(most * MIN_FILLED_SHARE)
    head = text[:most]
    fences = [fence.start() for fence in _FENCE.finditer(head)]
    paragraphs = [match.end() for match in _BLANK_LINE.finditer(head)]
    for end in reversed(paragraphs[-200:]):
        if end <= least:
            break
        if sum(fence < end for fence in fences) % 2 == 0:
            return end
    line = head.rfind("\n") + 1
    if line > least:
        return line
    sentence = most - len(sentences(head)[-1])
    if sentence > least:
        return sentence
    spaces = [match.end() for match in _SPACE.finditer(head, least)]
    return spaces[-1] if spaces else most
