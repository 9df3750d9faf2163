"""The values that may stand in a space file: text, finite numbers, true and false."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator

from search_spaces.assignment import Scalar


def _require_scalar(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise ValueError(f"expected a text, a number or true/false, found {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {value}")
    return value


StrictScalar = Annotated[Scalar, BeforeValidator(_require_scalar)]
