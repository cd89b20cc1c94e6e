"""spec O4: who may write what all share. Each row is a role, each column a kind."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from madeleine.memory.model import CALLER_ROLES, ORGANISATION_KNOWLEDGE_KINDS, KnowledgeKind, Role
from madeleine.memory.permissions import KnowledgeWriteAccess
from tests.rows import for_each_row

WRITES = {
    #           policy, decision, procedure, convention, knowledge
    "human": (True, True, True, True, True),
    "c_suite": (False, True, True, True, True),
    "lead": (False, True, True, True, True),
    "senior": (False, True, True, True, True),
    "agent": (False, False, False, False, True),
}


@for_each_row("role", CALLER_ROLES)
def test_a_role_writes_the_kinds_of_its_row(role: Role) -> None:
    access = KnowledgeWriteAccess()
    assert tuple(access.may_write(role, kind) for kind in ORGANISATION_KNOWLEDGE_KINDS) == WRITES[role]


@pytest.mark.parametrize("role", CALLER_ROLES)
@pytest.mark.parametrize("kind", ORGANISATION_KNOWLEDGE_KINDS)
def test_an_agent_changes_only_what_its_being_has_shared(role: Role, kind: KnowledgeKind) -> None:
    access = KnowledgeWriteAccess()
    assert access.role_may_change(role, kind, is_author=True) == access.may_write(role, kind)
    assert access.role_may_change(role, kind, is_author=False) == (access.may_write(role, kind) and role != "agent")


def test_another_table_replaces_only_the_kinds_that_it_names() -> None:
    access = KnowledgeWriteAccess.model_validate({"policy": ["human", "lead"]})
    assert access.may_write("lead", "policy")
    assert not access.may_write("senior", "policy")
    assert access.decision == KnowledgeWriteAccess().decision
    with pytest.raises(ValidationError):
        KnowledgeWriteAccess.model_validate({"policy": ["boss"]})
