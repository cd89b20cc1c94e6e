"""Scene notes that could not be read, marked `[PARSE_FAILED]`: told anew, they become memories (spec P6 ❶ 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from madeleine.memory.ingest.new_scene import NewScene, memory_from_new_scene
from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import NoteId, Scene
from madeleine.memory.rules.storing.secrets import RedactText
from madeleine.patrol.deciding.answers import (
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
)
from madeleine.patrol.deciding.requests import DecisionRequest, shorten_with_ellipsis
from madeleine.patrol.unit_of_work import UnitOfWork


class NoteRepairAnswerSchema(DecisionAnswerSchema):
    text: str


@dataclass(frozen=True, slots=True)
class NoteRepairAnswer(DecisionAnswer):
    """`text`: the scene that the note tells; "" if it tells none, and is closed."""

    kind = "repair"
    schema = NoteRepairAnswerSchema

    text: str

    def normalized(self) -> NoteRepairAnswer:
        return NoteRepairAnswer(self.text.strip())

    def redacted(self, redact: RedactText) -> NoteRepairAnswer:
        return NoteRepairAnswer(redact(self.text).text)

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        return self.text_complaints("text", self.text) if self.text else iter(())


class NoteRepairDecisionHandler(DecisionHandler[NoteRepairAnswer]):
    answer_type = NoteRepairAnswer

    async def keys_that_may_need_decision(self) -> list[str]:
        """Ids of notes, the oldest first."""
        return [note.id for note in await self.context.reads.unreadable_notes()]

    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]:
        return [
            DecisionRequest(
                kind="repair",
                memories=(),
                note_id=note.id,
                note=shorten_with_ellipsis(note.content, self.limits.text_chars),
                reason=shorten_with_ellipsis(note.reason, self.limits.text_chars),
                date=note.created_at.date().isoformat(),
            )
            for note in await self.context.reads.unreadable_notes()
            if note.id == key
        ]

    async def apply_answer(
        self, work: UnitOfWork, answer: NoteRepairAnswer, current: CurrentOfferedMemories
    ) -> dict[str, int] | RejectedModelAnswer:
        notes = {note.id: note for note in await work.transaction.unreadable_notes()}
        note = notes.get(NoteId(current.request.note_id))
        if note is None:
            return RejectedModelAnswer("The note was closed or removed since this was offered: nothing was stored.")
        if not answer.text:
            work.notes = (replace(note, state="done"),)
            return {"notes_closed": 1}
        new = NewScene(scene=Scene(action=answer.text, when=(current.request.date,)), tool="notes")
        memory = memory_from_new_scene(work.scope, new, self.context.services.now())
        work.add_memory(memory)
        work.notes = (replace(note, state="done", memory_id=memory.id),)
        return {"notes_repaired": 1}
