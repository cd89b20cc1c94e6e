"""How long tests wait for events."""

from __future__ import annotations

DEADLOCK_S = 300.0
"""What has not come by then does not come. On a busy machine a command of two seconds takes twenty: this must never be
near what a test takes."""
