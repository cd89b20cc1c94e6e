"""The methods that `make profile` times exist."""

from __future__ import annotations

import pytest

from benchmarks.profile import STAGES


@pytest.mark.parametrize("tool", STAGES)
def test_every_stage_is_a_method(tool: str) -> None:
    """It failed after a change of names, and nothing told."""
    assert [method for _, owner, method in STAGES[tool] if not callable(getattr(owner, method, None))] == []
