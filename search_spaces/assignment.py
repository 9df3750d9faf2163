"""One point of a search space: parameter → value, with a canonical text form that identifies it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

Scalar = bool | int | float | str
Assignment = dict[str, Scalar]
"""Parameter name → value. Always complete: a parameter that is inactive stands at its default."""
Facts = Mapping[str, object]
"""Environment fingerprint: fact name → value (JSON types only)."""


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
"""Made once: `json.dumps` makes one for each text that is not written with its defaults."""


def is_one_of(value: object, values: Iterable[Scalar]) -> bool:
    """Return whether a value is among others; True is not 1, and 1 is not 1.0."""
    for other in values:  # noqa: SIM110 - takes half the time of `any`, and is the innermost question of a search
        if value == other and type(value) is type(other):
            return True
    return False


def canonical_json(assignment: Mapping[str, Scalar]) -> str:
    """Return the one text form of an assignment: sorted keys, no spaces, so that equal points give equal text."""
    return _ENCODER.encode(dict(assignment))


def assignment_key(assignment: Mapping[str, Scalar]) -> str:
    """Return a 16-digit hexadecimal key that is equal exactly for equal assignments."""
    return hashlib.sha256(canonical_json(assignment).encode()).hexdigest()[:16]


def changed_parameters(first: Mapping[str, Scalar], second: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Return the names of the parameters whose values differ, in the order of `first`."""
    return tuple(name for name, value in first.items() if second.get(name) != value)
