"""Who may see what (spec P1, ruling 12). A scope comes from the connection, never from a tool argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:  # its vectors need numpy, and the command line needs the roles at once
    from madeleine.memory.model import BeingId

Role = Literal["human", "senior", "agent"]
"""Who speaks for a being: a person, an agent that is trusted with decisions, any other agent (spec O4)."""
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything that a caller does is done to this being's memories, and to no other's. Without
    `count_activations` a recall leaves no trace: reactivations are not counted."""

    being_id: BeingId
    client: str = ""
    role: Role = "agent"
    count_activations: bool = True
