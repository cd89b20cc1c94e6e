"""What a memory becomes when it is corrected, and what is kept of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from madeleine.memory.model import ClusterId, MemoryChanges
from madeleine.memory.rules.dynamics.revision import (
    changes_without_unchanged_fields,
    memory_after_changes,
    memory_values_before_change,
)
from tests.doubles import NOW, a_memory

CLUSTER = ClusterId("c")
OLD = a_memory("Ann lives in Rome", importance=0.4, themes=("home",), fresh=False, cluster_id=CLUSTER)
ALL = MemoryChanges(text="Ann lives in Oslo", importance=0.9, themes=("home", "move"), pinned=True)


def test_only_what_differs_is_a_change() -> None:
    asked = MemoryChanges(text=OLD.scene.action, importance=0.4, themes=("home",), pinned=True)
    assert changes_without_unchanged_fields(OLD, asked) == MemoryChanges(pinned=True)
    assert changes_without_unchanged_fields(OLD, ALL) == ALL


def test_false_zero_and_no_themes_are_values_like_others() -> None:
    old = memory_after_changes(OLD, ALL)
    asked = MemoryChanges(importance=0.0, themes=(), pinned=False)
    changed = memory_after_changes(old, changes_without_unchanged_fields(old, asked))
    assert (changed.importance, changed.themes, changed.pinned) == (0.0, (), False)
    assert memory_values_before_change(old, asked, at=NOW, client="").before == MemoryChanges(
        importance=0.9, themes=("home", "move"), pinned=True
    )


@pytest.mark.parametrize("status", ["active", "dying"])
def test_a_living_memory_with_another_text_is_fresh_and_looks_for_a_cluster_again(status: str) -> None:
    """ruling 1"""
    old = a_memory("Ann lives in Rome", status=status, fresh=False, cluster_id=CLUSTER)  # type: ignore[arg-type]
    changed = memory_after_changes(old, ALL)
    assert (changed.scene.action, changed.fresh, changed.cluster_id, changed.status) == (ALL.text, True, None, status)
    assert changed.content_hash != old.content_hash


def test_a_dead_memory_stays_dead_where_it_is() -> None:
    old = a_memory("Ann lives in Rome", status="dead", fresh=False, cluster_id=CLUSTER)
    changed = memory_after_changes(old, ALL)
    assert (changed.scene.action, changed.status, changed.fresh, changed.cluster_id) == (
        ALL.text,
        "dead",
        False,
        CLUSTER,
    )


def test_a_memory_whose_text_stays_stays_where_it_is() -> None:
    changed = memory_after_changes(OLD, MemoryChanges(importance=0.9, pinned=True))
    assert (changed.cluster_id, changed.fresh, changed.scene) == (CLUSTER, False, OLD.scene)


def test_what_is_kept_is_what_was_before_and_only_of_what_changed() -> None:
    at = NOW + timedelta(days=1)
    kept = memory_values_before_change(OLD, MemoryChanges(text="Ann lives in Oslo"), at=at, client="desk")
    assert (kept.memory_id, kept.at, kept.client) == (OLD.id, at, "desk")
    assert kept.before == MemoryChanges(text="Ann lives in Rome")
