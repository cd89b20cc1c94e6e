"""What is searched, as it stands in the tables: several fields in one text."""

from __future__ import annotations

from collections.abc import Iterable

from madeleine.memory.text.normalization import SEPARATOR, fold

__all__ = ["SEPARATOR", "delimited_theme", "fold", "fold_fields", "fold_themes"]


def fold_fields(fields: Iterable[str]) -> str:
    return SEPARATOR.join(fold(field) for field in fields)


def delimited_theme(theme: str) -> str:
    """A theme with its bounds, to be found in `fold_themes` as a whole only."""
    return f"{SEPARATOR}{fold(theme)}{SEPARATOR}"


def fold_themes(themes: Iterable[str]) -> str:
    return "".join(delimited_theme(theme) for theme in themes)
