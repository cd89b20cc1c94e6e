"""What an agent cannot find out by itself, and what it can (spec O12): a theme marks the former."""

from __future__ import annotations

from collections.abc import Iterable

from madeleine.memory.text.folding import fold

NON_INFERABLE_THEME = "non-inferable"
"""The theme of memories that nobody could read out of the code or the surroundings."""
ADVICE = (
    f"Recall is restricted to memories with the theme {NON_INFERABLE_THEME!r}, which this one lacks: it is kept, and "
    "not recalled. If nobody could find it out by looking at the code or the surroundings (why something was decided, "
    "what the team agreed on, why not otherwise, what other projects know), add the theme by update_memory."
)


def is_non_inferable(themes: Iterable[str]) -> bool:
    return any(fold(theme) == NON_INFERABLE_THEME for theme in themes)
