"""The space of a study: its engine's own, narrowed by what the user asks for and by what the engine cannot be told."""

from __future__ import annotations

from collections.abc import Mapping

from agent.server import Server
from agent.spec import StudySpec
from search_spaces import Assignment, Scalar, SearchSpace, SpecificationError
from search_spaces.assignment import is_one_of

Excludes = Mapping[str, tuple[Scalar, ...]]


def asked_space(spec: StudySpec, space: SearchSpace, server: Server | None) -> SearchSpace:
    """Return the space in which a study searches.

    Args:
        spec: The study, with its pins and excludes.
        space: Everything that may be tuned.
        server: What its server can be told, or None for an engine that is not asked.

    Raises:
        UsageError, SpecificationError: a value that does not exist, cannot be said, or is asked for and excluded.
    """
    pins = {name: _value(spec, space, "pin", name, value) for name, value in spec.pin.items()}
    excludes = {
        name: tuple(_value(spec, space, "exclude", name, value) for value in values)
        for name, values in spec.exclude.items()
    }
    for name, values in excludes.items():
        if name in pins and is_one_of(pins[name], values):
            raise spec.error(f"{name}={pins[name]} is pinned and excluded: keep one of the two", "exclude", name)
        if set(values) >= set(space.parameters[name].domain):
            raise spec.error("every value is excluded: leave at least one", "exclude", name)
    if server is None:
        return space.narrowed(pins, excludes)
    _check_start(spec, server, excludes)
    _check_sayable(spec, server, pins)
    gone = {name: tuple(values) for name, values in server.unavailable.items()}
    left_out = {name: (*excludes.get(name, ()), *gone.get(name, ())) for name in space.parameters}
    left_out = {name: values for name, values in left_out.items() if values and name not in pins}
    return space.starting_at(server.start).narrowed({**server.pins, **pins}, left_out)


def _value(spec: StudySpec, space: SearchSpace, key: str, name: str, value: Scalar) -> Scalar:
    try:
        return space.parse_value(name, value)
    except SpecificationError as error:
        raise spec.error(error.problem, key, name) from error


def _check_start(spec: StudySpec, server: Server, excludes: Excludes) -> None:
    """The base command is where the search starts: what it says must not be excluded."""
    for name, values in excludes.items():
        if name in server.start and name not in spec.pin and is_one_of(server.start[name], values):
            problem = f"the base command says {name}={server.start[name]}: pin another value, or keep it"
            raise spec.error(problem, "exclude", name)


def _check_sayable(spec: StudySpec, server: Server, pins: Assignment) -> None:
    """What is asked for by name is not left out in silence."""
    for key, asked in (("pin", pins), ("base_cmd", {**server.start, **pins})):
        for name, value in asked.items():
            for gone, why in server.unavailable.get(name, {}).items():
                if is_one_of(value, (gone,)):
                    below = (name,) if key == "pin" else ()
                    raise spec.error(f"{name}={value} cannot be had: {why.removeprefix('error: ')}", key, *below)
