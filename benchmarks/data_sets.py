"""Evidence-labelled retrieval sets: `NAME.docs.jsonl.xz` and `NAME.queries.jsonl.xz` in one folder."""

from __future__ import annotations

import json
import lzma
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import Scene

_TIMES = ("%I:%M %p on %d %B, %Y", "%B-%d-%Y", "%Y/%m/%d (%a) %H:%M", "%Y-%m-%d")
_SPEAKER = re.compile(r"([^\W\d][\w .'-]{0,30}): ")


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    text: str
    session: str
    time: str


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    id: str
    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """One being's store: its queries are asked of its documents only."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[LabelledQuery, ...]


def names(folder: Path) -> list[str]:
    return sorted(path.name.removesuffix(".docs.jsonl.xz") for path in folder.glob("*.docs.jsonl.xz"))


USER_TURNS = ":user"
"""Suffix of a set's name: only the user's turns, and the queries that they can answer."""
_TURN = re.compile(r"#(\d+)$")


def read(folder: Path, name: str) -> list[Unit]:
    if name.endswith(USER_TURNS):
        return [user_turns(unit) for unit in read(folder, name.removesuffix(USER_TURNS))]
    documents: dict[str, list[Document]] = defaultdict(list)
    queries: dict[str, list[LabelledQuery]] = defaultdict(list)
    for row in _rows(folder / f"{name}.docs.jsonl.xz"):
        documents[row["unit"]].append(Document(row["id"], row["text"], row.get("session") or "", row.get("ts") or ""))
    for row in _rows(folder / f"{name}.queries.jsonl.xz"):
        queries[row["unit"]].append(LabelledQuery(row["id"], row["text"], tuple(row["gold"])))
    return [
        Unit(unit, tuple(rows), tuple(query for query in queries[unit] if query.gold))
        for unit, rows in documents.items()
    ]


def user_turns(unit: Unit) -> Unit:
    """The user's turns of a unit whose documents are numbered turns; the user has the even ones."""
    kept = tuple(
        document for document in unit.documents if (turn := _TURN.search(document.id)) and int(turn.group(1)) % 2 == 0
    )
    ids = {document.id for document in kept}
    answerable = [
        LabelledQuery(query.id, query.text, tuple(id_ for id_ in query.gold if id_ in ids)) for query in unit.queries
    ]
    return Unit(unit.name, kept, tuple(query for query in answerable if query.gold))


def _rows(path: Path) -> list[Mapping[str, str]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scene(document: Document) -> NewScene:
    """The scene that an agent would store for a turn: the whole text, the speaker as actor, the time in ISO."""
    speaker = _SPEAKER.match(document.text)
    time = iso_time(document.time)
    return NewScene(
        scene=Scene(
            action=document.text,
            actors=(speaker.group(1),) if speaker else (),
            when=(time,) if time else (),
        ),
        session_id=document.session,
        key=document.id,
        tool="benchmark",
    )


def iso_time(text: str) -> str:
    for pattern in _TIMES:
        try:
            return datetime.strptime(text.strip(), pattern).isoformat(timespec="minutes")
        except ValueError:
            continue
    return ""
