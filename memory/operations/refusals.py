"""What every repository of operational data refuses, in the same words (spec O10)."""

from __future__ import annotations

from madeleine.memory.errors import InvalidInput
from madeleine.memory.operations.values import AuditRecord, Task

MEMORY_AUDIT_RECORD_ID_PREFIX = "memory:"
"""Of the ids of what was done to memories."""


class ActionAlreadyRecorded(InvalidInput):
    def __init__(self, id_: str) -> None:
        super().__init__(f"There is a record {id_!r} already, and the audit is only added to.")


def require_task_is_not_patrol_run(task: Task) -> None:
    """Raises `InvalidInput` for a patrol."""
    if task.kind != "task":
        raise InvalidInput("A patrol's run is written by the patrol: save a task of the kind 'task'.")


def require_audit_record_written_by_application(record: AuditRecord) -> None:
    """Raises `InvalidInput` for what was done to memories."""
    if record.source != "application" or record.id.startswith(MEMORY_AUDIT_RECORD_ID_PREFIX):
        raise InvalidInput("What is done to memories is recorded by the memory: save what your application did.")
