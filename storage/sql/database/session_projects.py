"""Of which project a conversation is (spec O2): the one in which its first message was observed."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, not_, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from madeleine.storage.sql.database.filters import sql_is_in_bound_or_no_project
from madeleine.storage.sql.tables.conversations import sessions

_s = sessions.c
SESSION_IS_IN_BOUND_PROJECT = sql_is_in_bound_or_no_project(_s.project)
_SELECT_SESSION_IDS_OF_OTHER_PROJECTS = select(_s.session_id).where(
    _s.being_id == bindparam("being"), not_(SESSION_IS_IN_BOUND_PROJECT)
)


def message_in_bound_project_condition(
    messages: ReadOnlyColumnCollection[str, ColumnElement[str]],
) -> ColumnElement[bool]:
    """Of a message of the being `being`: as `SESSION_IS_IN_BOUND_PROJECT` of its session."""
    return messages.session_id.not_in(_SELECT_SESSION_IDS_OF_OTHER_PROJECTS)
