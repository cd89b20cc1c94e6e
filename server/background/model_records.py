"""What the ledger remembers of embedding models: which one serves, which one is wanted, how each is calibrated.

The latest explicit act wins. A switch holds as long as `MADELEINE_EMBEDDING_MODEL` is what it was at that time; a
setting that was changed afterwards is the later act.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import BaseModel

from madeleine.inference import ENGLISH_MODEL_NAME, FP32_MODEL_NAME, PACKAGED_MODEL_NAME
from madeleine.memory.model import EmbeddingModelName
from madeleine.memory.vector_space import CosineCalibration

SERVING_EMBEDDING_MODEL_SETTING = "embedding_model"
WANTED_EMBEDDING_MODEL_SETTING = "embedding_model_wanted"
REFUSED_MODEL_SWITCH_SETTING = "embedding_model_refused"
EMBEDDING_CALIBRATIONS_SETTING = "embedding_calibrations"
FORMER_DEFAULT_MODELS = (ENGLISH_MODEL_NAME, FP32_MODEL_NAME)


class StoreSettingsAccess(Protocol):
    """Settings of the store."""

    async def setting(self, name: str) -> Any: ...

    async def set_setting(self, name: str, value: Any) -> None: ...

    async def has_vectors_of_model(self, model: EmbeddingModelName) -> bool: ...


class EmbeddingModelSwitchRecord(BaseModel, frozen=True):
    """`model` and `previous`: a name, or the path of a directory. `configured`: the setting when it was switched.
    `request`: the id of the request that asked for it."""

    model: str
    previous: str
    configured: str
    request: str = ""


class WantedEmbeddingModelRecord(BaseModel, frozen=True):
    model: str
    request: str


class RefusedModelSwitchRecord(BaseModel, frozen=True):
    """`reason`: why a switch was not carried out, and what to do."""

    request: str
    reason: str


class EmbeddingModelRecords:
    def __init__(self, ledger: StoreSettingsAccess) -> None:
        self._ledger = ledger

    async def model_switch_in_effect(self, configured: str) -> EmbeddingModelSwitchRecord | None:
        """The last switch; None if there was none, or the setting was changed since."""
        record = await self.last_switch()
        if record is None or record.configured == configured:
            return record
        # Under an earlier version's default, and not back to that default.
        is_same_setting = configured == PACKAGED_MODEL_NAME and record.configured in FORMER_DEFAULT_MODELS
        return record if is_same_setting and record.model not in FORMER_DEFAULT_MODELS else None

    async def last_switch(self) -> EmbeddingModelSwitchRecord | None:
        """Also one that a later setting has made void."""
        value = await self._ledger.setting(SERVING_EMBEDDING_MODEL_SETTING)
        return EmbeddingModelSwitchRecord.model_validate(value) if value else None

    async def model_to_serve(self, configured: str) -> str:
        """The model that serves, or is to serve at the next start."""
        record = await self.model_switch_in_effect(configured)
        return record.model if record else configured

    async def serve_former_default_until_switched(self, configured: str) -> None:
        """A store that an earlier version has filled keeps the default model of that version until the vectors of the
        new one are whole: a switch in the background is asked for. Does nothing for any other store."""
        if configured != PACKAGED_MODEL_NAME or await self.model_switch_in_effect(configured):
            return
        if await self._ledger.has_vectors_of_model(EmbeddingModelName(PACKAGED_MODEL_NAME)):
            return
        former = [await self._ledger.has_vectors_of_model(EmbeddingModelName(name)) for name in FORMER_DEFAULT_MODELS]
        if not any(former):
            return
        await self.request_switch(PACKAGED_MODEL_NAME)
        await self.record_model_switch_for_next_start(
            EmbeddingModelSwitchRecord(model=ENGLISH_MODEL_NAME, previous=ENGLISH_MODEL_NAME, configured=configured)
        )

    async def wanted_model(self) -> WantedEmbeddingModelRecord | None:
        value = await self._ledger.setting(WANTED_EMBEDDING_MODEL_SETTING)
        return WantedEmbeddingModelRecord.model_validate(value) if value else None

    async def request_switch(self, model: str) -> WantedEmbeddingModelRecord:
        """The process that owns the memory carries it out."""
        wanted = WantedEmbeddingModelRecord(model=model, request=uuid.uuid4().hex)
        await self._ledger.set_setting(WANTED_EMBEDDING_MODEL_SETTING, wanted.model_dump())
        return wanted

    async def withdraw_switch_request(self) -> None:
        await self._ledger.set_setting(WANTED_EMBEDDING_MODEL_SETTING, None)

    async def refusal_reason(self, request: str) -> str | None:
        """Why this request was refused; None if it was not."""
        value = await self._ledger.setting(REFUSED_MODEL_SWITCH_SETTING)
        record = RefusedModelSwitchRecord.model_validate(value) if value else None
        return record.reason if record and record.request == request else None

    async def record_model_switch_for_next_start(self, serving: EmbeddingModelSwitchRecord) -> None:
        """For the next start, by a process that owns the memory or where none does."""
        await self._ledger.set_setting(SERVING_EMBEDDING_MODEL_SETTING, serving.model_dump())

    async def calibration(self, name: EmbeddingModelName) -> CosineCalibration | None:
        known: Mapping[str, Any] = await self._ledger.setting(EMBEDDING_CALIBRATIONS_SETTING) or {}
        return CosineCalibration(**known[name]) if name in known else None

    async def calibrations_with_added(self, name: EmbeddingModelName, calibration: CosineCalibration) -> dict[str, Any]:
        """The value of `EMBEDDING_CALIBRATIONS_SETTING` with this one."""
        known = await self._ledger.setting(EMBEDDING_CALIBRATIONS_SETTING) or {}
        return {**known, name: {"slope": calibration.slope, "offset": calibration.offset}}
