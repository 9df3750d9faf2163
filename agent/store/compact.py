"""Values as small as they can be kept: a study of thousands of trials holds all of them in memory.

Pydantic notes for each object the names of the fields that were given, in a set of its own, and keeps the fields in a
dictionary that has its own table of names (seen on pydantic 2.14). Of a trial that came out of the storage that is more
than two thirds of its memory, and the same few sets and tables over and over. Here an object is built anew in the way
Python builds objects of a class, where the names stand with the class; and sets of names, short texts and assignments
that are equal are shared. All of these objects are frozen, and a changed copy of one gets tables of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Mapping
from sys import intern
from typing import Any, TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)
LONGEST_SHARED = 31
"""Characters of a text that is likely to come again: names, values, stages, reasons. Cookies are longer."""
_names: dict[frozenset[str], set[str]] = {}
"""The sets that are shared, by their content; as many as there are forms of objects."""
_lately: deque[dict[str, Any]] = deque(maxlen=8)
"""The dictionaries seen last: most of a trial's are equal to each other, or to one of the trial before."""


def compact(model: Model, as_it_is: Container[str] = ()) -> Model:
    """Return an equal frozen object that shares what equal ones have, itself and everything in it.

    Args:
        model: The object; nobody should keep it.
        as_it_is: Fields of it whose values are shared already.
    """
    kind = type(model)
    small = kind.__new__(kind)
    for name, value in model.__dict__.items():  # what was computed once and kept (`cached_property`) goes along
        object.__setattr__(small, intern(name), value if name in as_it_is else _compact(value))
    given = model.__pydantic_fields_set__
    object.__setattr__(small, "__pydantic_fields_set__", _names.setdefault(frozenset(given), given))
    object.__setattr__(small, "__pydantic_extra__", model.__pydantic_extra__)
    object.__setattr__(small, "__pydantic_private__", model.__pydantic_private__)
    return small


def _compact(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return compact(value)
    if type(value) is str:
        return intern(value) if len(value) <= LONGEST_SHARED else value
    if type(value) is tuple:
        return tuple(map(_compact, value))
    if type(value) is dict:
        small = {_compact(name): _compact(each) for name, each in value.items()}
        if (same := next((each for each in _lately if _is_same(each, small)), None)) is not None:
            return same
        _lately.append(small)
        return small
    return value


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two dictionaries cannot be told apart: `1`, `1.0` and `True` are equal and not the same."""
    if len(one) != len(other):
        return False
    pairs = zip(one.items(), other.items(), strict=True)
    return all(_is_plain(a) and type(a) is type(b) and a == b and name == there for (name, a), (there, b) in pairs)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
