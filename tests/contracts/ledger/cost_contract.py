"""What every repository of costs must do (spec O10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from madeleine.memory.operations.ports import CostRecordRepository
from madeleine.memory.operations.values import CostFilter, CostGrouping, CostRecord

NIGHT = datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC)
MORNING = NIGHT + timedelta(microseconds=1)


def cost(at: datetime = NIGHT, *, tokens: tuple[int, int] = (90, 10), **fields: object) -> CostRecord:
    names = {"agent_id": "ada", "task_id": "run-1", "purpose": "diary", "model": "small"}
    spent = {"at": at, "input_tokens": tokens[0], "output_tokens": tokens[1]}
    return CostRecord.model_validate(names | spent | fields)


RECORDS = (
    cost(usd=0.5),
    cost(MORNING, usd=0.25, model="large", tokens=(10**12, 1)),
    cost(MORNING, task_id="run-2", purpose="extract"),
    cost(MORNING + timedelta(days=1), agent_id="bob", usd=1.0, task_id="run-2"),
)


class CostContract:
    """Subclasses have a fixture `costs`: a repository without records."""

    async def test_costs_come_back_latest_first_as_they_were_recorded(self, costs: CostRecordRepository) -> None:
        assert isinstance(costs, CostRecordRepository)
        assert (await costs.query(), await costs.aggregate(), await costs.totals("day")) == ((), 0.0, ())
        for record in RECORDS:
            await costs.save(record)
        assert await costs.query() == RECORDS[::-1]
        assert await costs.query(limit=1) == (RECORDS[3],)
        filters: list[tuple[CostFilter, set[int]]] = [
            ({"agent_id": "ada"}, {0, 1, 2}),
            ({"agent_id": "ada", "task_id": "run-2"}, {2}),
            ({"model": "large"}, {1}),
            ({"purpose": "diary", "since": MORNING}, {1, 3}),
            ({"since": MORNING, "until": MORNING}, {1, 2}),
            ({"until": NIGHT}, {0}),
            ({"agent_id": "eve"}, set()),
        ]
        for filter_, places in filters:
            expected = [RECORDS[place] for place in places]
            assert set(await costs.query(**filter_)) == set(expected), filter_
            assert await costs.aggregate(**filter_) == sum(record.usd or 0 for record in expected), filter_
            assert sum(total.calls for total in await costs.totals("run", **filter_)) == len(expected), filter_

    async def test_costs_add_up_by_day_run_model_purpose_and_being(self, costs: CostRecordRepository) -> None:
        for record in RECORDS:
            await costs.save(record)
        groups: dict[CostGrouping, list[tuple[str, int, int, float | None, int]]] = {
            "day": [
                ("2026-03-01", 1, 90, 0.5, 0),
                ("2026-03-02", 2, 10**12 + 90, 0.25, 1),
                ("2026-03-03", 1, 90, 1.0, 0),
            ],
            "run": [("run-1", 2, 10**12 + 90, 0.75, 0), ("run-2", 2, 180, 1.0, 1)],
            "model": [("large", 1, 10**12, 0.25, 0), ("small", 3, 270, 1.5, 1)],
            "purpose": [("diary", 3, 10**12 + 180, 1.75, 0), ("extract", 1, 90, None, 1)],
            "being": [("ada", 3, 10**12 + 180, 0.75, 1), ("bob", 1, 90, 1.0, 0)],
        }
        for by, expected in groups.items():
            totals = await costs.totals(by)
            told = [(total.group, total.calls, total.input_tokens, total.usd, total.unpriced_calls) for total in totals]
            assert told == expected, by
        [first, last] = await costs.totals("being")
        assert (first.first, first.last, first.output_tokens) == (NIGHT, MORNING, 21)
        assert last.first == last.last == RECORDS[3].at
