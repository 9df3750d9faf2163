"""Narrowing a parameter to some of its values: what hangs on the others goes with them."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.assignment import Scalar
from search_spaces.errors import SpecificationError
from search_spaces.parameter import IntRange, Parameter
from search_spaces.switches import value_text


def restricted(parameter: Parameter, values: tuple[Scalar, ...], name: str) -> Parameter:
    """Return the parameter with these values only.

    Raises:
        SpecificationError: when no value is left.
    """
    if not values:
        raise SpecificationError("every value is excluded: leave at least one", key=name)
    # A pinned value is meant: it is not locked.
    locked = tuple(value for value in parameter.locked if value in values and len(values) > 1)
    free = [value for value in values if value not in locked] or list(values)
    default = parameter.default if parameter.default in free else free[0]
    update = {
        "values": values,
        "range": _as_range(parameter, values),
        "default": default,
        "default_where": tuple(entry for entry in parameter.default_where if entry.value in values),
        "near": tuple(variant for variant in parameter.near if variant.value in values),
        "switches": {key: entry for key, entry in parameter.switches.items() if key in map(value_text, values)},
        "locked": locked if len(free) < len(values) else (),
    }
    if update["range"] is not None:
        update["values"] = None
    return parameter.model_copy(update=update)


def _as_range(parameter: Parameter, values: tuple[Scalar, ...]) -> IntRange | None:
    """Keep an ordered range ordered for the sampler where the remaining values still form one."""
    numbers = [value for value in values if isinstance(value, int)]
    if parameter.range is None or len(numbers) != len(values):
        return None
    step = numbers[1] - numbers[0] if len(numbers) > 1 else parameter.range.step
    candidate = IntRange(low=numbers[0], high=numbers[-1], step=step)
    return candidate if tuple(range(candidate.low, candidate.high + 1, step)) == tuple(numbers) else None


def within(overrides: Mapping[str, Scalar], parameters: Mapping[str, Parameter]) -> dict[str, Scalar]:
    """Return the overrides whose value is still one of their parameter's."""
    return {name: value for name, value in overrides.items() if value in parameters[name].domain}
