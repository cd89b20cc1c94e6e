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

from madeleine.memory.ingest.store import NewScene
from madeleine.memory.model import Scene

_TIMES = ("%I:%M %p on %d %B, %Y", "%B-%d-%Y", "%Y/%m/%d (%a) %H:%M")
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
"""Behind a set's name: of each session only the user's turns, and the questions that these can answer."""
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
    """Of documents that are numbered as turns of a session, where user and assistant take turns and the user begins."""
    kept = tuple(one for one in unit.documents if (turn := _TURN.search(one.id)) and int(turn.group(1)) % 2 == 0)
    ids = {one.id for one in kept}
    left = [LabelledQuery(one.id, one.text, tuple(id_ for id_ in one.gold if id_ in ids)) for one in unit.queries]
    return Unit(unit.name, kept, tuple(one for one in left if one.gold))


def _rows(path: Path) -> list[Mapping[str, str]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scene(document: Document) -> NewScene:
    """A turn as an agent would store it: the text whole, its speaker an actor, its time as ISO."""
    spoken = _SPEAKER.match(document.text)
    moment = iso_time(document.time)
    return NewScene(
        scene=Scene(
            action=document.text,
            actors=(spoken.group(1),) if spoken else (),
            when=(moment,) if moment else (),
        ),
        session_id=document.session,
        key=document.id,
        tool="benchmark",
    )


def iso_time(text: str) -> str:
    for form in _TIMES:
        try:
            return datetime.strptime(text.strip(), form).isoformat(timespec="minutes")
        except ValueError:
            continue
    return ""
