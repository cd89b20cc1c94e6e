"""The nearest known name to one that is mistyped."""

from __future__ import annotations

from collections.abc import Iterable


def nearest_name(given: str, known: Iterable[str]) -> str:
    """ "" where nothing is near."""
    from difflib import get_close_matches  # otherwise not needed by a forwarder, which is to start fast

    return next(iter(get_close_matches(given, sorted(known), n=1, cutoff=0.6)), "")


def did_you_mean_text(given: str, known: Iterable[str]) -> str:
    """ " Is X meant?", or all that there are where nothing is near."""
    names = sorted(known)
    near = nearest_name(given, names)
    return f" Is {near!r} meant?" if near else f" Known are {', '.join(names)}." if names else ""
