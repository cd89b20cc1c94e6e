"""Of which project a conversation is (spec O2): the one in which its first message was observed."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, or_, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from madeleine.storage.sql.tables.conversations import sessions

_s = sessions.c
_PROJECT = bindparam("project", type_=_s.project.type)
IS_OF_PROJECT = or_(_s.project.is_(None), _s.project == _PROJECT)
"""Of a session: shown to a caller who works in the project `project`, "" for none."""
_SESSIONS_OF_OTHERS = select(_s.session_id).where(
    _s.being_id == bindparam("being"), _s.project.is_not(None), _s.project != _PROJECT
)


def is_said_in_project(messages: ReadOnlyColumnCollection[str, ColumnElement[str]]) -> ColumnElement[bool]:
    """Of a message of the being `being`: as `IS_OF_PROJECT` of its session."""
    return messages.session_id.not_in(_SESSIONS_OF_OTHERS)
