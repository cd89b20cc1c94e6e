"""The risk of what is done to memories, for the common audit (spec O10)."""

from __future__ import annotations

from collections.abc import Mapping

from madeleine.memory.audit import AuditEventKind
from madeleine.memory.operations.values import RiskLevel

RISK_BY_AUDIT_EVENT: Mapping[AuditEventKind, RiskLevel] = {
    **dict.fromkeys(("recall", "store", "reinforce", "observe", "note"), "low"),
    # It changes what is there, and can be undone.
    **dict.fromkeys(("update", "supersede", "retract", "restore", "patrol", "profile", "reindex", "import"), "medium"),
    # A copy of all that was told leaves the memory.
    **dict.fromkeys(("forget", "export", "backup"), "high"),
    "token": "critical",
}
