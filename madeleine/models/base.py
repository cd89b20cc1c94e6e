"""What all answers have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ClientAnswerBaseModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
