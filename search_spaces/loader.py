"""Load a space: one of the catalogue by its engine's name, or a user's file."""

from __future__ import annotations

import itertools
from importlib import resources
from pathlib import Path
from typing import Protocol

from search_spaces.assignment import Scalar, is_one_of
from search_spaces.errors import SpecificationError, nearest
from search_spaces.parameter import Parameter
from search_spaces.relation import Relation
from search_spaces.space import SearchSpace
from search_spaces.yaml_document import YamlDocument


def catalogue() -> tuple[str, ...]:
    """Return the names of the spaces that ship with the package."""
    folder = resources.files("search_spaces") / "catalogue"
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def load_space(name_or_path: str) -> SearchSpace:
    """Return the space of that catalogue name or file.

    Raises:
        SpecificationError: with file, line and key, for anything that is wrong in the file.
    """
    if name_or_path in catalogue():
        return load_space_file(Path(str(resources.files("search_spaces") / "catalogue" / f"{name_or_path}.yaml")))
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or _is_there(path):
        return load_space_file(path)
    raise SpecificationError(
        f"no space of that name. {nearest(name_or_path, catalogue())} Or give the path of a .yaml file.",
        key=name_or_path,
    )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for a file
        return False


def load_space_file(path: Path) -> SearchSpace:
    """Return the space in a YAML file, with every cross-reference in it checked."""
    return space_of(YamlDocument(path))


def space_of(document: YamlDocument) -> SearchSpace:
    """Return the space that a document (or a part of one) holds, with every cross-reference in it checked."""
    space = document.validate(SearchSpace)
    check_space(document, space)
    return space


class Source(Protocol):
    """Where a space was written: it knows how to point there."""

    def error(self, problem: str, *location: str | int) -> SpecificationError:
        """Return an error that points to a key of the space."""


def check_space(document: Source, space: SearchSpace) -> None:
    """Check every cross-reference in a space.

    Raises:
        SpecificationError: for the first name or value that does not exist, or relation that nothing satisfies.
    """
    if not space.parameters:
        raise document.error("a space needs at least one parameter", "parameters")
    _check_references(document, space)
    for index, relation in enumerate(space.relations):
        try:
            space.check_satisfiable(relation)
        except SpecificationError as error:
            raise document.error(error.problem, "relations", index) from error
    _check_conflicts(document, space)
    _check_starting_points(document, space)


def _check_references(document: Source, space: SearchSpace) -> None:
    above: set[str] = set()
    for name, parameter in space.parameters.items():
        for other, values in parameter.active_when.items():
            where = ("parameters", name, "active_when", other)
            _check_values(document, space, other, values, where)
            if other not in above:  # one pass over the space then settles what is active
                raise document.error(f"'{other}' must stand above '{name}', which depends on it", *where)
        above.add(name)
        for index, variant in enumerate(parameter.near):
            for other, value in variant.instead.items():
                _check_values(document, space, other, (value,), ("parameters", name, "near", index, "instead", other))
    for index, relation in enumerate(space.relations):
        _check_relation(document, space, relation, index)
    for other, value in space.baseline.items():
        _check_values(document, space, other, (value,), ("baseline", other))
    for index, name in enumerate(space.draft_lengths):
        if name not in space.parameters:
            problem = f"no such parameter. {nearest(name, space.parameters)}"
            raise document.error(problem, "draft_lengths", index)
    for index, fallback in enumerate(space.fallbacks):
        for other, value in fallback.items():
            _check_values(document, space, other, (value,), ("fallbacks", index, other))


def _check_relation(document: Source, space: SearchSpace, relation: Relation, index: int) -> None:
    for place, clause in relation.clauses():
        for other, values in clause.items():
            if other in space.parameters:
                _check_values(document, space, other, values, ("relations", index, *place, other))
    for other in relation.parameters:
        if other not in space.parameters:
            problem = f"no such parameter: '{other}'. {nearest(other, space.parameters)}"
            raise document.error(problem, "relations", index)


def _check_conflicts(document: Source, space: SearchSpace) -> None:
    """Two parameters may set the same option or variable only where one has no meaning beside the other's values that
    do: otherwise the engine would be told two things at once."""
    for (first, one), (second, other) in itertools.combinations(space.parameters.items(), 2):
        for names in ("flag_names", "env_names"):
            for target in set(getattr(one, names)) & set(getattr(other, names)):
                if not (_gives_way(other, first, one, target) or _gives_way(one, second, other, target)):
                    problem = f"'{first}' sets '{target}' too: leave it to one of them, or give '{second}' an "
                    problem += f"'active_when' over the values of '{first}' that do not set it"
                    raise document.error(problem, "parameters", second)


def _gives_way(parameter: Parameter, other_name: str, other: Parameter, target: str) -> bool:
    """Whether the parameter has no meaning beside every value of the other one that sets the target."""
    allowed = parameter.active_when.get(other_name)
    return allowed is not None and not any(_sets(other, value, target) for value in allowed)


def _sets(parameter: Parameter, value: Scalar, target: str) -> bool:
    said = parameter.switches_of(value)
    return target in said.flags or target in said.env


def _check_values(
    document: Source, space: SearchSpace, name: str, values: tuple[Scalar, ...], location: tuple[str | int, ...]
) -> None:
    try:
        for value in values:
            if not is_one_of(meant := space.parse_value(name, value), (value,)):
                raise SpecificationError(f"write {meant!r}, not {value!r}")
    except SpecificationError as error:
        raise document.error(error.problem, *location) from error


def _check_starting_points(document: Source, space: SearchSpace) -> None:
    default = {name: parameter.default for name, parameter in space.parameters.items()}
    for where, assignment in (("parameters", default), ("baseline", {**default, **space.baseline})):
        if problem := space.violation(space.normalise(assignment, {}), {}):
            raise document.error(f"the defaults break a relation: {problem}", where)
