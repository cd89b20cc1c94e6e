"""Numbers of things, as a person reads them: 1 memory, 1,200 memories."""

from __future__ import annotations


def count_phrase(number: int, singular: str, plural: str = "") -> str:
    """`plural`: the singular with an "s" by default."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
