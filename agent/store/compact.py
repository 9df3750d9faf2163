"""Values as small as they can be kept: a study of thousands of trials holds all of them in memory.

Pydantic notes for each object the names of the fields that were given, in a set of its own. Of a trial that came out
of the storage that is more than half of its memory, and the same few sets over and over: they are shared here. All of
these objects are frozen, and a changed copy of one gets a set of its own (seen on pydantic 2.14).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)
_names: dict[frozenset[str], set[str]] = {}
"""The sets that are shared, by their content; as many as there are forms of objects."""


def compact(model: Model) -> Model:
    """Return a frozen object that shares what equal ones have, itself and everything in it."""
    _walk(model)
    return model


def _walk(value: object) -> None:
    if isinstance(value, BaseModel):
        given = value.__pydantic_fields_set__
        object.__setattr__(value, "__pydantic_fields_set__", _names.setdefault(frozenset(given), given))
        for name in type(value).model_fields:
            _walk(getattr(value, name))
    elif isinstance(value, tuple | list):
        for each in value:
            _walk(each)
    elif isinstance(value, Mapping):
        for each in value.values():
            _walk(each)
