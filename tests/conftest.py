"""For all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is slow, not wrong: no deadline for a single example.
settings.register_profile("madeleine", deadline=None)
settings.load_profile("madeleine")
