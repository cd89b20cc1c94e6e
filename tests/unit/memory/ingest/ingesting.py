"""`IngestText` over a household."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from madeleine.memory.ingest.being_statistics import BeingCentroids, TextRarityScorer
from madeleine.memory.ingest.ingest import IngestedTextWithChunks, IngestText, TextIngestRequest
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.model import Scope
from madeleine.memory.rules.storing.chunking import ChunkTokenLimits
from madeleine.memory.rules.storing.secrets import redact_secrets
from tests.doubles import ADA
from tests.household import Household

LIMITS = ChunkTokenLimits(least=5, most=20)
SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

TRIP = "Maria took the night train to Lisbon in May and forgot her umbrella there."
SOUP = "the soup was warm and the bread was fresh and all were content."
TEA = "I prefer green tea without sugar in the afternoon."


@dataclass
class Ingesting:
    home: Household
    store: StoreScenes = field(init=False)
    ingest: IngestText = field(init=False)

    def __post_init__(self) -> None:
        home = self.home
        self.store = StoreScenes(home.ledger.memories, home.index, home.embedder, now=home.clock)
        self.ingest = self.again()

    def again(self, **fields: Any) -> IngestText:
        """As after a restart."""
        home = self.home
        given = {"limits": LIMITS, **fields}
        return IngestText(
            home.ledger.memories,
            given.pop("store", self.store),
            home.embedder,
            BeingCentroids(home.ledger.recall, home.embedder),
            TextRarityScorer(home.words),
            now=home.clock,
            redact=redact_secrets,
            **given,
        )

    async def __call__(self, text: str, *, scope: Scope = ADA, **fields: Any) -> IngestedTextWithChunks:
        return await self.ingest(scope, TextIngestRequest(text=text, **fields))

    async def kept(self) -> list[str]:
        return sorted(memory.scene.action for memory in await self.home.all())
