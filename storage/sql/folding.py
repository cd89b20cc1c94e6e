"""Text as keyword search compares it (spec P11): letter case and compatibility forms make no difference."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

SEPARATOR = "\x1f"
"""Between fields, so that no term matches across two of them; kept out of what is folded."""


def fold(text: str) -> str:
    """NFKC of the casefolded text: `Ｓtraße` and `STRASSE` are one."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # A lone surrogate, which a client can send as JSON, cannot be written in UTF-8 and so cannot be stored.
    return folded.replace(SEPARATOR, " ").encode(errors="replace").decode()


def fold_fields(fields: Iterable[str]) -> str:
    return SEPARATOR.join(fold(field) for field in fields)


def whole(theme: str) -> str:
    """A theme with its bounds, to be found in `fold_themes` as a whole only."""
    return f"{SEPARATOR}{fold(theme)}{SEPARATOR}"


def fold_themes(themes: Iterable[str]) -> str:
    return "".join(whole(theme) for theme in themes)
