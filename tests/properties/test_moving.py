"""What leaves as an export comes back as it was: every field, in any order, however often."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from madeleine.memory.moving import records as r
from madeleine.memory.moving.record_base import ExportRecord
from tests.household import new_store
from tests.moving_values import export_after_imports, exported, file_of, parsed, whole_exports

_SETTINGS = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a store for each example: shrinking takes minutes
)
SCHEMA = json.loads((Path(r.__file__).parent / "export.schema.json").read_text(encoding="utf-8"))


@_SETTINGS
@given(records=whole_exports())
def test_an_export_that_is_imported_is_exported_with_the_same_bytes(
    records: list[ExportRecord], templates: Path
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = (new_store(templates, Path(folder) / name) for name in ("a.db", "b.db"))
        lines = asyncio.run(export_after_imports(first, [file_of(records)]))
        assert sorted(map(_line, parsed(lines))) == sorted(map(_line, records))
        assert asyncio.run(export_after_imports(second, [lines])) == lines
        validator = Draft202012Validator(SCHEMA)
        for line in lines:
            validator.validate(json.loads(line))


@pytest.mark.slow
@_SETTINGS
@given(data=st.data())
def test_imports_in_any_order_and_number_give_the_same_store(data: st.DataObject, templates: Path) -> None:
    files = [
        file_of(data.draw(whole_exports(being, first)))
        for being, first in (("ada", 1), ("bob", 100_001), ("cleo", 200_001))
    ]
    with tempfile.TemporaryDirectory() as folder:
        first, second = (new_store(templates, Path(folder) / name) for name in ("a.db", "b.db"))
        both = asyncio.run(export_after_imports(first, files))
        # One file for all beings is a file like the others.
        files.append(both)
        order = data.draw(st.lists(st.sampled_from(files), max_size=4))
        rest = data.draw(st.permutations(files))
        other = asyncio.run(export_after_imports(second, [*order, *rest]))
        assert [pair for pair in zip(both, other, strict=False) if pair[0] != pair[1]] == []
        assert other == both
        assert exported(first) == both


def _line(record: ExportRecord) -> bytes:
    return record.json_line()


def test_every_type_of_record_is_drawn_with_every_field() -> None:
    @settings(max_examples=1, database=None)
    @given(records=whole_exports())
    def see(records: list[ExportRecord]) -> None:
        for record in records:
            assert set(type(record).model_fields) == set(record.model_dump())

    see()


@pytest.mark.slow
async def test_five_thousand_memories_come_back_with_the_same_bytes(tmp_path: Path, templates: Path) -> None:
    records = many_records(5_000)
    first, second = (new_store(templates, tmp_path / name) for name in ("a.db", "b.db"))
    lines = await export_after_imports(first, [file_of(records)])
    assert sum(b'"type":"memory"' in line for line in lines) == 5_000
    assert await export_after_imports(second, [lines]) == lines


def many_records(count: int) -> list[ExportRecord]:
    """Every field used, in memories that differ."""
    from tests.moving_values import NOW, uuid_of

    cluster = r.ClusterExportRecord(
        being="ada", id=uuid_of(10**6), name="Harbour", parent_id=uuid_of(10**6), is_root=True
    )
    memories = [
        r.MemoryExportRecord(
            being="ada", id=uuid_of(number), number=number, action=f"Event {number} at the harbour", actors=("Ada",),
            when=("2026-03-01", r.DatedActionExportRecord(date="2026-03-02", action="sailed")), setting="harbour",
            dialogue=("Ahoy",), sensory=("salt",), feeling="calm", lesson="Look at the sky first", category="episodic",
            themes=("sea",), emotions=("joy",), emotion=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), importance=number / count,
            pinned=number % 7 == 0, created_at=NOW, happened_at=NOW, tool="store", client="tests",
            session_id=f"s{number % 50}", turn=number, key=f"k{number}", status=("active", "dying", "dead")[number % 3],
            fresh=False, cluster_id=cluster.id, absorbed_into=uuid_of(number + 1), compressed=True,
            compressed_into=uuid_of(number + 2), compression_source=False, resembles=uuid_of(number + 3),
            retold=("2026-04-01",), truth="superseded", valid_from=NOW, valid_until=NOW,
            superseded_by=uuid_of(number + 4), retraction_reason="no", may_supersede=uuid_of(number + 5),
            session_count=number % 9, access_count=1, reactivation_count=2, last_activated=NOW, last_accessed=NOW,
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    being = r.BeingExportRecord(being="ada", cycle=9, think=("on",), think_sources=(uuid_of(1),), last_number=count)
    return [being, cluster, *memories]
