"""Records of an export with every field used, by chance or not."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from madeleine.memory.model import ALL_MEMORY_STATUSES, CALLER_ROLES, MEMORY_CATEGORIES, ORGANISATION_KNOWLEDGE_KINDS
from madeleine.memory.moving import records as r
from madeleine.memory.moving.export_file import ExportFileReader, export_lines, record_counts_in_file_order
from madeleine.memory.moving.ports import ImportReport
from madeleine.memory.moving.record_base import ExportHeader, ExportRecord
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from madeleine.storage.sql.moving.export import open_ledger_snapshot_for_export

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEING = "ada"
texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
shares = st.floats(0, 1)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda moment: moment.replace(tzinfo=UTC))
counts = st.integers(0, 10**6)
timelines = st.lists(texts | st.builds(r.DatedActionExportRecord, date=texts, action=texts), max_size=2).map(tuple)
lists = st.lists(texts, max_size=2).map(tuple)


def uuid_of(number: int) -> str:
    return str(uuid.UUID(int=number))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def whole_exports(draw: st.DrawFn, being: str = BEING, first: int = 1) -> list[ExportRecord]:
    """Records of one being that hang together, in the order of a file. Ids begin with the number `first`."""
    count = draw(st.integers(1, 4))
    ids = [uuid_of(first + number) for number in range(count)]
    cluster = uuid_of(first + 1000)
    some_id = maybe(st.sampled_from(ids))

    def several(record: Any, /, **fields: Any) -> list[Any]:
        return draw(st.lists(st.builds(record, being=st.just(being), **fields), max_size=2))

    memory = {
        "action": texts.filter(bool), "actors": lists, "when": timelines, "setting": texts, "dialogue": lists,
        "sensory": lists, "feeling": texts, "lesson": texts, "category": st.sampled_from(MEMORY_CATEGORIES),
        "themes": lists,
        "emotions": st.lists(st.sampled_from(["joy", "fear", "pride"]), max_size=3, unique=True).map(tuple),
        "emotion": maybe(st.tuples(*[st.floats(-1, 1)] * 6)), "importance": shares, "pinned": st.booleans(),
        "created_at": moments, "happened_at": moments, "tool": texts, "client": texts, "session_id": texts,
        "turn": counts, "status": st.sampled_from(ALL_MEMORY_STATUSES), "fresh": st.booleans(),
        "cluster_id": maybe(st.just(cluster)), "absorbed_into": some_id, "compressed": st.booleans(),
        "compressed_into": some_id, "compression_source": st.booleans(), "resembles": some_id, "retold": timelines,
        "truth": st.sampled_from(["current", "superseded", "retracted"]), "valid_from": maybe(moments),
        "valid_until": maybe(moments), "superseded_by": some_id, "retraction_reason": texts, "may_supersede": some_id,
        "knowledge": maybe(st.sampled_from(ORGANISATION_KNOWLEDGE_KINDS)),
        "author": maybe(st.sampled_from(["ada", "bo"])),
        "author_role": maybe(st.sampled_from(CALLER_ROLES)),
        "session_count": counts, "access_count": counts, "reactivation_count": counts,
        "last_activated": maybe(moments), "last_accessed": maybe(moments), "kept_until": maybe(moments),
    }  # fmt: skip
    memories = [
        draw(
            st.builds(
                r.MemoryExportRecord,
                being=st.just(being),
                id=st.just(id_),
                number=st.just(number),
                key=maybe(names.map(lambda text, id_=id_: f"{id_}{text}")),  # type: ignore[misc]
                **memory,
            )
        )
        for number, id_ in enumerate(ids, start=1)
    ]
    of_memory = {"memory_id": st.sampled_from(ids), "at": moments, "client": texts}
    fields = {"truth": st.just("current"), "valid_from": maybe(counts), "superseded_by": some_id}
    acts = st.fixed_dictionaries(fields)
    sessions = [
        r.SessionExportRecord(
            being=being, session_id=f"session {first}", title=draw(texts), interface=draw(texts),
            first_at=draw(moments), last_at=draw(moments), messages=9, watched=draw(st.integers(0, 9)),
            put_off=draw(counts), abandoned=draw(counts), failures=draw(counts), next_try=draw(moments),
        )
    ]  # fmt: skip
    messages = [
        draw(
            st.builds(
                r.MessageExportRecord, being=st.just(being), id=st.just(uuid_of(first + 2000 + position)),
                session_id=st.just(f"session {first}"), position=st.just(position),
                role=st.sampled_from(["user", "assistant"]), speaker=texts, text=texts, at=moments, stored_at=moments,
                client=texts, key=st.none() | st.just(f"key {position}"),
            )
        )
        for position in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    links = [
        r.MessageMemoryExportRecord(being=being, message_id=message.id, memory_id=draw(st.sampled_from(ids)))
        for message in messages
        if draw(st.booleans())
    ]
    notes = [
        draw(
            st.builds(
                r.NoteExportRecord, being=st.just(being), id=st.just(uuid_of(first + 3000 + number)), kind=texts,
                content=texts, state=st.sampled_from(["unread", "done", "parse_failed"]), reason=texts,
                created_at=st.just(NOW + timedelta(seconds=number)), memory_id=some_id,
            )
        )
        for number in range(draw(st.integers(0, 2)))
    ]  # fmt: skip
    profile = r.ProfileExportRecord(
        being=being, kind="soul", name=draw(names), value=draw(texts), enabled=draw(st.booleans()),
        updated_at=draw(moments), memory_id=draw(some_id),
    )  # fmt: skip
    diary = r.DiaryExportRecord(
        being=being, date="2026-03-01", text=draw(texts),
        sources=draw(st.lists(st.sampled_from(ids), max_size=2).map(tuple)), written_at=draw(moments),
    )  # fmt: skip
    lessons = [
        r.LessonExportRecord(
            being=being, memory_id=id_, discovery=draw(texts), condition=draw(texts), action=draw(texts),
            rationale=draw(texts), steps=draw(lists), confidence=draw(shares), helped=draw(counts), failed=draw(counts),
        )
        for id_ in ids
        if draw(st.booleans())
    ]  # fmt: skip
    run = uuid_of(first + 4000)
    return [
        r.BeingExportRecord(
            being=being, cycle=draw(st.integers(1, 10**6)), think=draw(lists), think_sources=(ids[0],),
            last_number=count + draw(st.integers(0, 5)),
        ),
        r.ClusterExportRecord(
            being=being, id=cluster, name=draw(texts), parent_id=cluster, is_root=draw(st.booleans())
        ),
        *memories,
        *several(r.ReinforcementExportRecord, text=texts, tool=texts, session_id=texts, key=st.none(), **of_memory),
        *several(
            r.RevisionExportRecord, text=maybe(texts), importance=maybe(shares), themes=maybe(lists),
            pinned=maybe(st.booleans()), when=maybe(lists), **of_memory,
        ),
        *several(
            r.TruthChangeExportRecord, act_id=st.uuids().map(str), kind=texts, tool=texts, run_id=texts, before=acts,
            after=acts, **of_memory,
        ),
        *lessons,
        *sessions,
        *messages,
        *links,
        *notes,
        profile,
        diary,
        r.ForgottenMessageKeyExportRecord(being=being, key_hash=draw(names.filter(bool))),
        r.PatrolRunExportRecord(
            being=being, id=run, started=draw(moments), finished=draw(moments), state="finished",
            report=draw(st.dictionaries(texts, counts, max_size=2)),
        ),
        *several(
            r.PatrolChangeExportRecord, run_id=st.just(run), step=texts, kind=texts, target=texts,
            before=maybe(st.dictionaries(texts, counts, max_size=2)), after=maybe(st.just({"a": [1, None]})),
        ),
    ]  # fmt: skip


def file_of(records: Sequence[ExportRecord]) -> list[bytes]:
    """The lines of the export that holds them."""
    found: dict[str, int] = {}
    for record in records:
        found[record.type] = found.get(record.type, 0) + 1
    beings = tuple(sorted({record.being for record in records}))
    places = {type_: place for place, type_ in enumerate(r.EXPORT_RECORD_CLASSES)}
    in_order = sorted(records, key=lambda record: places[record.type])
    return list(export_lines(ExportHeader(beings=beings, counts=record_counts_in_file_order(found)), in_order))


def exported(ledger: LedgerLocation, being: str | None = None, *, journal: bool = True) -> list[bytes]:
    with open_ledger_snapshot_for_export(ledger, being, journal=journal) as export:
        return list(export.lines())


async def imported(ledger: LedgerRepositories, lines: Iterable[bytes], *, dry_run: bool = False) -> ImportReport:
    reader = ExportFileReader("e.jsonl", iter(lines))
    return await ledger.imports.import_records(
        reader.header, reader.records(), source="e.jsonl", client="tests", at=NOW, dry_run=dry_run
    )


async def export_after_imports(path: Path, files: Iterable[Sequence[bytes]]) -> list[bytes]:
    async with open_ledger(path) as ledger:
        for lines in files:
            await imported(ledger, lines)
    return exported(path)


def parsed(lines: Iterable[bytes]) -> Iterator[ExportRecord]:
    yield from ExportFileReader("e.jsonl", iter(lines)).records()
