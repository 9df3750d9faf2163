"""What selects a value of a parameter: the options and variables that an engine must be given for exactly it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from search_spaces.assignment import Scalar
from search_spaces.scalar import StrictScalar


class SpaceModel(BaseModel):
    """Base of the models a space file is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


def value_text(value: Scalar) -> str:
    """Return how values are told apart on the command line and as keys of `switches`, whatever their case: `ring`."""
    return str(value).lower()


def spelled(value: Scalar) -> str:
    """Return how a value is shown: as its engine reads it, and true and false as YAML has them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_keys(value: object) -> object:
    """Keys by text: JSON knows no others, and no two values of a parameter read the same."""
    if not isinstance(value, Mapping):
        return value
    return {value_text(key): entry for key, entry in value.items()}


def _as_variable(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError('a variable is text: write "1" or "0"')
    return str(value) if isinstance(value, int) else value


class Switches(SpaceModel):
    """All that must be said for one value, and nothing that may be left away."""

    flags: Mapping[str, StrictScalar] = Field(default_factory=dict)
    """Long option without dashes → its value; true is a bare flag. A name with dots (`a.b`) is key `b` of the JSON
    object that option `a` takes."""
    env: Mapping[str, Annotated[str, BeforeValidator(_as_variable)]] = Field(default_factory=dict)
    """Environment variable → its text."""

    @field_validator("flags")
    @classmethod
    def _are_long_options(cls, flags: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
        for name, value in flags.items():
            if name.startswith("-"):
                raise ValueError(f"write '{name.lstrip('-')}': options stand here without their dashes")
            if value is False and "." not in name:
                raise ValueError(f"'{name}: false' says nothing: a bare flag is true or left away")
        return flags


SwitchTable = Annotated[Mapping[str, Switches], BeforeValidator(_as_keys)]
"""Text of a value → its switches."""
