"""What a caller may do with the memory of its being, by its role (spec O4)."""

from __future__ import annotations

from typing import Literal

from madeleine.memory.model import Role

Permission = Literal["read", "write", "maintain", "erase"]
"""To recall; to store, and to change what a journal or a version can bring back; to run patrols and decide in them; to
erase for good."""

PERMISSIONS: dict[Role, frozenset[Permission]] = {
    "agent": frozenset({"read", "write", "maintain"}),
    "senior": frozenset({"read", "write", "maintain", "erase"}),
    "human": frozenset({"read", "write", "maintain", "erase"}),
}
"""The one table of rights. A read-only caller has only tools that read, whatever its role."""


def permissions_of_role(role: Role) -> frozenset[Permission]:
    return PERMISSIONS[role]
