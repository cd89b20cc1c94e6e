"""Tasks of an application beside patrols, and messages between agents (spec O10)."""

from __future__ import annotations

import sys
from typing import Any, Unpack

from sqlalchemy import Text, bindparam, delete, func, insert, literal, select, union_all

from madeleine.memory.operations.ports import DEFAULT_RECORD_LIMIT
from madeleine.memory.operations.refusals import require_task_is_not_patrol_run
from madeleine.memory.operations.values import Message, Task, TaskFilter, TaskRecordKind
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.filters import equals_if_bound
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row
from madeleine.storage.sql.database.tables import patrol_runs
from madeleine.storage.sql.erasing.scrub_marks import mark_files_for_scrub
from madeleine.storage.sql.operations.records import OperationalRecordRepository, OperationalRecordStatements
from madeleine.storage.sql.tables.operations import channel_messages_table, tasks_table

_t, _r, _m = tasks_table.c, patrol_runs.c, channel_messages_table.c
_PATROL_LITERAL = literal("patrol", Text)
_all = union_all(
    select(*tasks_table.c, literal("task", Text).label("kind")),
    select(
        *(_r.id, _PATROL_LITERAL.label("title"), _r.state.label("status"), _r.being_id.label("assigned_to")),
        *(literal("", Text).label("project"), _r.started, _r.finished, _r.report, _PATROL_LITERAL),
    ),
).subquery("all_tasks")
_columns: dict[str, Any] = dict(_all.c)
_FILTER_FIELD_NAMES = ("status", "assigned_to", "project")
_TASK_ROW_MAPPER = RowMapper(Task, **_columns)
_SELECT_TASKS = (
    select(*_TASK_ROW_MAPPER.columns)
    .where(*(equals_if_bound(_all.c[name], name) for name in (*_FILTER_FIELD_NAMES, "kind")))
    .order_by(_all.c.created_at, _all.c.id)
    .limit(bindparam("limit"))
)
# A patrol's id is a UUID that it was given here.
_SELECT_TASK = (
    select(*_TASK_ROW_MAPPER.columns).where(_all.c.id == bindparam("task_id")).order_by(_all.c.kind.desc()).limit(1)
)


class SqlTaskRepository(OperationalRecordRepository[Task]):
    """`TaskRepository`."""

    _table = OperationalRecordStatements(Task, tasks_table)

    async def save(self, task: Task, /) -> None:
        require_task_is_not_patrol_run(task)
        await super().save(task)

    async def get(self, task_id: str) -> Task | None:
        found = await self._database.rows(_SELECT_TASK, _TASK_ROW_MAPPER.from_row, task_id=task_id)
        return found[0] if found else None

    async def list_tasks(
        self, *, kind: TaskRecordKind | None = "task", limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[TaskFilter]
    ) -> tuple[Task, ...]:
        binds = dict.fromkeys(_FILTER_FIELD_NAMES) | dict(filter) | {"kind": kind}
        return tuple(await self._database.rows(_SELECT_TASKS, _TASK_ROW_MAPPER.from_row, limit=limit, **binds))

    async def delete(self, task_id: str) -> bool:
        return await self._delete(task_id)


_CHANNEL_MESSAGE_ROW_MAPPER = RowMapper(Message, channel_messages_table)
_SELECT_CHANNEL_MESSAGE_ID = select(_m.id).where(_m.id == bindparam("message_id"))
_SELECT_LATEST_CHANNEL_MESSAGES = (
    select(*_CHANNEL_MESSAGE_ROW_MAPPER.columns)
    .where(_m.channel == bindparam("of_channel"))
    .order_by(_m.at.desc(), _m.seq.desc())
    .limit(bindparam("limit"))
)
_COUNT_CHANNEL_MESSAGES = select(func.count()).where(_m.channel == bindparam("of_channel"))
_INSERT_CHANNEL_MESSAGE = insert(channel_messages_table)
_DELETE_CHANNEL_MESSAGES = delete(channel_messages_table).where(_m.channel == bindparam("of_channel"))


class SqlChannelMessageRepository(DatabaseRepository):
    """`MessageRepository`."""

    async def save(self, message: Message) -> None:
        async with self._database.transaction() as transaction:
            if not await transaction.rows(_SELECT_CHANNEL_MESSAGE_ID, first_column_of_row, message_id=message.id):
                await transaction.execute_many(_INSERT_CHANNEL_MESSAGE, [_CHANNEL_MESSAGE_ROW_MAPPER.to_row(message)])

    async def get_history(self, channel: str, *, limit: int | None = None) -> tuple[Message, ...]:
        most = sys.maxsize if limit is None else limit
        latest = await self._database.rows(
            _SELECT_LATEST_CHANNEL_MESSAGES, _CHANNEL_MESSAGE_ROW_MAPPER.from_row, of_channel=channel, limit=most
        )
        return tuple(reversed(latest))

    async def delete_channel(self, channel: str) -> int:
        async with self._database.transaction() as transaction:
            [count] = await transaction.rows(_COUNT_CHANNEL_MESSAGES, first_column_of_row, of_channel=channel)
            if count:
                await transaction.execute_many(_DELETE_CHANNEL_MESSAGES, [{"of_channel": channel}])
                await mark_files_for_scrub(transaction)
        return int(count)
