"""ADR 106: a store that an earlier version has filled is served by that version's model, and moves to the new one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from madeleine.inference import ENGLISH_MODEL_NAME, PACKAGED_MODEL_NAME
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import Scene
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from tests.doubles import ADA

TOLD = ("Mi hermana vive en Lyon.", "La caja fuerte se abre con 4711.", "The dentist is on Monday at nine.")
SECONDS = 60.0


async def first_text(memory: OpenedMemoryStore, question: str) -> str:
    answer = await memory.use_cases.recall(ADA, RecallQuery(text=question))
    return answer.memories[0][0].scene.action if answer.memories else ""


async def test_an_older_store_answers_at_once_and_reads_more_languages_a_moment_later(tmp_path: Path) -> None:
    older = Settings(data_dir=tmp_path, embedding_model=ENGLISH_MODEL_NAME, patrol_auto=False)
    async with open_memory_store(older) as memory:
        await memory.use_cases.store(ADA, [NewScene(scene=Scene(action=text)) for text in TOLD])
    newer = Settings(data_dir=tmp_path, patrol_auto=False)
    async with open_memory_store(newer) as memory:
        assert await first_text(memory, "When is the dentist?") == TOLD[2]
        async with asyncio.timeout(SECONDS):
            while memory.embedder.model_name != PACKAGED_MODEL_NAME:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await first_text(memory, "When is the dentist?") == TOLD[2]
        assert await first_text(memory, "Where does my sister live?") == TOLD[0]
    async with open_memory_store(newer) as memory:
        assert memory.embedder.model_name == PACKAGED_MODEL_NAME
        counts = await memory.ledger.index_source.count_vectors_by_model()
        assert counts.get(memory.embedder.model_name) == len(TOLD), json.dumps(counts)
        assert await first_text(memory, "Where does my sister live?") == TOLD[0]
