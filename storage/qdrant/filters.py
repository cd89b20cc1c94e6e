"""Which points are meant, in our words; each adapter has a small translator into its engine's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from madeleine.memory.candidates import CandidateQuery
from madeleine.memory.model import LIVING, BeingId, Category, Status
from madeleine.memory.scope import Scope
from madeleine.memory.text.folding import fold
from madeleine.storage.qdrant.schema import BEING, CATEGORY, LIVES_IN, STATUS, THEMES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Where:
    """All that is given must hold; an empty tuple and None ask for nothing.

    `keys` are point ids as numbers; `vector` is the name of a vector that the point has.
    """

    being: BeingId | None = None
    statuses: tuple[Status, ...] = ()
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    """Each of these."""
    keys: Sequence[int] | None = None
    vector: str | None = None

    def fields(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """(payload field, the values of which it has one)."""
        living = self.being is not None and set(self.statuses) == set(LIVING)
        if self.being is not None:
            yield LIVES_IN if living else BEING, (self.being,)
        if self.statuses and not living:
            yield STATUS, self.statuses
        if self.categories:
            yield CATEGORY, self.categories
        for theme in self.themes:
            yield THEMES, (fold(theme),)


def memories_of(scope: Scope, *, vector: str | None = None) -> Where:
    return Where(being=scope.being_id, vector=vector)


def asked_for(scope: Scope, query: CandidateQuery) -> Where:
    return Where(being=scope.being_id, statuses=query.statuses, categories=query.categories, themes=query.themes)
