"""Conditions by values that are bound, shared by several tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, bindparam, or_

from madeleine.storage.sql.database.dialect import MAX_INT, MIN_INT
from madeleine.storage.sql.database.mapping import microseconds_from_moment


def equals_if_bound(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The column, of texts, has the value that is bound to `name`, unless that is NULL."""
    return or_(bindparam(name, type_=Text).is_(None), column == bindparam(name))


def sql_is_in_bound_or_no_project(column: ColumnElement[str | None]) -> ColumnElement[bool]:
    """The column names no project, or the one that is bound to `project`, "" for a caller who works in none (spec
    O2)."""
    return or_(column.is_(None), column == bindparam("project", type_=column.type))


def sql_is_in_bound_period(column: ColumnElement[int]) -> ColumnElement[bool]:
    """See `period_binds`."""
    return and_(column >= bindparam("since"), column <= bindparam("until"))


def period_binds(since: datetime | None, until: datetime | None) -> dict[str, int]:
    """Both inclusive; None for no limit."""
    return {
        "since": microseconds_from_moment(since) if since else MIN_INT,
        "until": microseconds_from_moment(until) if until else MAX_INT,
    }
