"""Which embedding model serves after an upgrade (ADR 106)."""

from __future__ import annotations

from typing import Any

import pytest

from madeleine.inference import ENGLISH_MODEL_NAME, FP32_MODEL_NAME, PACKAGED_MODEL_NAME
from madeleine.memory.model import EmbeddingModelName
from madeleine.server.background.model_records import EmbeddingModelRecords, EmbeddingModelSwitchRecord


class StoreSettings:
    """`StoreSettingsAccess` in memory. `counts`: vectors by the model that made them."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.values: dict[str, Any] = {}

    async def setting(self, name: str) -> Any:
        return self.values.get(name)

    async def set_setting(self, name: str, value: Any) -> None:
        self.values[name] = value

    async def has_vectors_of_model(self, model: EmbeddingModelName) -> bool:
        return model in self.counts


async def upgraded(counts: dict[str, int], configured: str = PACKAGED_MODEL_NAME) -> tuple[str, str | None]:
    """The model that serves, and the one that is asked for."""
    records = EmbeddingModelRecords(StoreSettings(counts))
    await records.serve_former_default_until_switched(configured)
    wanted = await records.wanted_model()
    return await records.model_to_serve(configured), wanted.model if wanted else None


@pytest.mark.parametrize("former", [ENGLISH_MODEL_NAME, FP32_MODEL_NAME])
async def test_an_older_store_keeps_its_model_until_the_new_one_has_embedded_it(former: str) -> None:
    assert await upgraded({former: 3}) == (ENGLISH_MODEL_NAME, PACKAGED_MODEL_NAME)


@pytest.mark.parametrize(
    ("counts", "configured"),
    [
        ({}, PACKAGED_MODEL_NAME),
        ({PACKAGED_MODEL_NAME: 3}, PACKAGED_MODEL_NAME),
        ({PACKAGED_MODEL_NAME: 3, ENGLISH_MODEL_NAME: 2}, PACKAGED_MODEL_NAME),
        ({"another": 3}, PACKAGED_MODEL_NAME),
        ({ENGLISH_MODEL_NAME: 3}, ENGLISH_MODEL_NAME),
        ({ENGLISH_MODEL_NAME: 3}, "another"),
    ],
)
async def test_any_other_store_is_served_as_configured(counts: dict[str, int], configured: str) -> None:
    assert await upgraded(counts, configured) == (configured, None)


async def test_a_model_chosen_by_command_under_the_former_default_goes_on_serving() -> None:
    records = EmbeddingModelRecords(StoreSettings({ENGLISH_MODEL_NAME: 3, "mine": 3}))
    await records.record_model_switch_for_next_start(
        EmbeddingModelSwitchRecord(model="mine", previous=ENGLISH_MODEL_NAME, configured=ENGLISH_MODEL_NAME)
    )
    await records.serve_former_default_until_switched(PACKAGED_MODEL_NAME)
    assert await records.model_to_serve(PACKAGED_MODEL_NAME) == "mine"
    assert await records.wanted_model() is None


async def test_whoever_chooses_the_former_default_by_command_keeps_it() -> None:
    records = EmbeddingModelRecords(StoreSettings({ENGLISH_MODEL_NAME: 3}))
    await records.record_model_switch_for_next_start(
        EmbeddingModelSwitchRecord(
            model=ENGLISH_MODEL_NAME, previous=PACKAGED_MODEL_NAME, configured=PACKAGED_MODEL_NAME
        )
    )
    await records.serve_former_default_until_switched(PACKAGED_MODEL_NAME)
    assert await records.model_to_serve(PACKAGED_MODEL_NAME) == ENGLISH_MODEL_NAME
    assert await records.wanted_model() is None
