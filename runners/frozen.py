"""The base of every value object that crosses a process boundary."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of every value object: immutable, and an unknown key is an error rather than silently dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")
