"""Who speaks for a being."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["human", "senior", "agent"]
"""A person, an agent that is trusted with decisions, any other agent (spec O4)."""
ROLES: tuple[Role, ...] = get_args(Role)
