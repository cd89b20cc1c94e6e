"""What a caller may do, by its role: with the memory of its being, and with what an organisation knows (spec O4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from madeleine.memory.model import KnowledgeKind, Role

Permission = Literal["read", "write", "maintain", "erase"]
"""To recall; to store, and to change what a journal or a version can bring back; to run patrols and decide in them; to
erase for good."""

PERMISSIONS_BY_ROLE: dict[Role, frozenset[Permission]] = {
    "agent": frozenset({"read", "write", "maintain"}),
    "senior": frozenset({"read", "write", "maintain", "erase"}),
    "lead": frozenset({"read", "write", "maintain", "erase"}),
    "c_suite": frozenset({"read", "write", "maintain", "erase"}),
    "human": frozenset({"read", "write", "maintain", "erase"}),
}
"""The one table of rights. A read-only caller has only tools that read, whatever its role."""


def permissions_of_role(role: Role) -> frozenset[Permission]:
    return PERMISSIONS_BY_ROLE[role]


_ROLES_ABOVE_AGENT: frozenset[Role] = frozenset({"human", "senior", "lead", "c_suite"})


class KnowledgeWriteAccess(BaseModel):
    """The roles that may write each kind of what an organisation knows; the defaults are those of spec O4. Whoever may
    write a kind may supersede and retract of it what it has shared; of others only a role above `agent`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: frozenset[Role] = frozenset({"human"})
    decision: frozenset[Role] = _ROLES_ABOVE_AGENT
    procedure: frozenset[Role] = _ROLES_ABOVE_AGENT
    convention: frozenset[Role] = _ROLES_ABOVE_AGENT
    knowledge: frozenset[Role] = _ROLES_ABOVE_AGENT | {"agent"}

    @property
    def roles_by_knowledge_kind(self) -> Mapping[KnowledgeKind, frozenset[Role]]:
        return {
            "policy": self.policy,
            "decision": self.decision,
            "procedure": self.procedure,
            "convention": self.convention,
            "knowledge": self.knowledge,
        }

    def may_write(self, role: Role, kind: KnowledgeKind) -> bool:
        return role in self.roles_by_knowledge_kind[kind]

    def role_may_change(self, role: Role, kind: KnowledgeKind, *, is_author: bool) -> bool:
        """Supersede or retract; where `is_author`, what the caller's being has shared."""
        return self.may_write(role, kind) and (is_author or role in _ROLES_ABOVE_AGENT)
