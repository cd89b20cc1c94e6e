"""The day looked back on, and points for the next session (spec P8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from madeleine.memory.language import Rejected
from madeleine.memory.model import ContentHash
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.patrol.deciding.answers import Answer, Diary
from madeleine.patrol.deciding.checks import checked
from madeleine.patrol.deciding.offer import MOST, Kind, Offer
from madeleine.patrol.deciding.offering import diary_offer, told_before
from madeleine.patrol.matter import Applied, Topic, present
from madeleine.patrol.night import Night
from madeleine.patrol.ports import PatrolReads
from madeleine.patrol.round import World

READ = 5 * MOST
"""Of the memories since the last entry the latest so many; the most important of them are shown."""
SOURCES = 300
"""Remembered of an entry or of the points, the latest."""


class WriteDiary:
    kind: Kind = "diary"

    async def waiting(self, world: World, view: PatrolReads) -> list[Topic]:
        """If anything was stored since the last entry, as ruling 1 does not wait for scene notes."""
        last = await view.last_diary()
        new = await view.stored_since(last.written_at if last else None, limit=1)
        return [Topic("diary", world.today().isoformat(), len(new))] if new else []

    async def offers(self, world: World, view: PatrolReads, topic: Topic) -> list[Offer]:
        last = await view.last_diary()
        new = await view.stored_since(last.written_at if last else None, limit=READ)
        earlier = last.text if last and last.date == topic.key else ""
        offer = diary_offer(topic.key, new, earlier, (await view.thoughts()).points)
        return [offer] if offer else []

    async def texts(self, world: World, view: PatrolReads, offer: Offer, answer: Answer) -> Mapping[ContentHash, str]:
        return {}

    async def apply(self, night: Night, offer: Offer, answer: Answer, world: World) -> Applied | Rejected:
        found = checked(answer, offer, await present(night, offer))
        if isinstance(found, Rejected):
            return found
        assert isinstance(found.answer, Diary)
        shown = tuple(memory.id for memory in offer.memories)
        last, thoughts = await night.diary_until_now()
        today = last if last and last.date == offer.date else None
        if (offer.earlier, offer.think) != told_before(today.text if today else "", thoughts.points):
            # Its words may be of a memory that is forgotten by now, and would come back with a new text.
            return Rejected("What was written before has changed since: nothing was written. Take a new offer.")
        earlier = today.sources if today else ()
        night.also = replace(
            night.also,
            diary=DiaryEntry(
                date=offer.date,
                text=found.answer.diary,
                sources=tuple(dict.fromkeys((*earlier, *shown)))[-SOURCES:],
                written_at=offer.until or world.now(),
            ),
            thoughts=Thoughts(
                points=found.answer.think_md,
                sources=tuple(dict.fromkeys((*thoughts.sources, *shown)))[-SOURCES:],
            ),
        )
        return Applied({"written": 1, "points": len(found.answer.think_md)}, found.left_out)
