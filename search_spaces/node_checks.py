"""What may be wrong in a node model that its types cannot tell: names and values that do not exist, and the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from search_spaces.assignment import Scalar, is_one_of
from search_spaces.errors import SpecificationError, nearest
from search_spaces.node_model import NodeFile
from search_spaces.node_parts import Clause, Conditional, Wanted, fact_problems
from search_spaces.space import SearchSpace

Location = tuple[str | int, ...]
Problem = tuple[Location, str]


def problems(file: NodeFile, space: SearchSpace) -> Iterator[Problem]:
    """Yield what is wrong in a file, with where it stands, in the order of the file."""
    for name, problem in fact_problems(file.facts):
        yield ("facts", name) if name else ("facts",), problem
    yield from _of_performance(file, space)
    for index, change in enumerate(file.durations.effects):
        yield from _of_conditional(change, ("durations", "effects", index), file, space)
    yield from _of_failures(file, space)
    for index, no_op in enumerate(file.no_ops):
        where: Location = ("no_ops", index)
        yield from _of_conditional(no_op, where, file, space)
        for name, value in no_op.resolved.items():
            yield from _of_values(name, (value,), (*where, "resolved", name), space)


def _of_performance(file: NodeFile, space: SearchSpace) -> Iterator[Problem]:
    draft, where = file.performance.draft, ("performance", "draft")
    if draft is not None:
        yield from _of_clause(draft.off_when, (*where, "off_when"), space)
        if draft.parameter not in space.parameters:
            yield (*where, "parameter"), _unknown(draft.parameter, space)
        elif not _has_numbers(draft.parameter, space):
            yield (*where, "parameter"), f"'{draft.parameter}' has no values that are numbers"
    for index, effect in enumerate(file.performance.effects):
        yield from _of_conditional(effect, ("performance", "effects", index), file, space)


def _of_failures(file: NodeFile, space: SearchSpace) -> Iterator[Problem]:
    names: set[str] = set()
    for index, failure in enumerate(file.failures):
        where: Location = ("failures", index)
        if failure.name in names:
            yield (*where, "name"), f"another failure is called '{failure.name}': choose another name"
        names.add(failure.name)
        yield from _of_conditional(failure, where, file, space)
        for name in failure.blames or ():
            if name not in space.parameters:
                yield (*where, "blames"), _unknown(name, space)
        if failure.rung == "probe" and "probe" not in file.rungs:
            yield (*where, "rung"), "this node has no probe rung (see 'rungs')"
        hidden = [name for name in failure.when if name not in space.probe_parameters]
        if failure.rung == "probe" and hidden:
            yield (*where, "rung"), f"a probe cannot see '{hidden[0]}' (its space does not say seen_by_probe)"


def _of_conditional(written: Conditional, where: Location, file: NodeFile, space: SearchSpace) -> Iterator[Problem]:
    yield from _of_clause(written.when, (*where, "when"), space)
    for name in written.where:
        outer, _, inner = name.partition(".")
        if outer not in file.facts or (inner and not isinstance(file.facts[outer], Mapping)):
            yield (*where, "where", name), f"no such fact. {nearest(outer, file.facts)}"


def _of_clause(clause: Clause, where: Location, space: SearchSpace) -> Iterator[Problem]:
    for name, wanted in clause.items():
        if wanted.values is not None:
            yield from _of_values(name, wanted.values, (*where, name), space)
        elif name not in space.parameters:
            yield (*where, name), _unknown(name, space)
        else:
            yield from _of_bounds(name, wanted, (*where, name), space)


def _of_bounds(name: str, wanted: Wanted, where: Location, space: SearchSpace) -> Iterator[Problem]:
    if any(isinstance(bound, str | bool) for bound in wanted.bounds) or not _has_numbers(name, space):
        yield where, "at_least and at_most need numbers; list the values instead"
    elif not any(wanted.holds_for(value) for value in space.parameters[name].domain):
        yield where, f"none of its values lies in there: {list(space.parameters[name].domain)}"


def _of_values(name: str, values: tuple[Scalar, ...], where: Location, space: SearchSpace) -> Iterator[Problem]:
    for value in values:
        try:
            meant = space.parse_value(name, value)
        except SpecificationError as error:
            yield where, error.problem
        else:
            if not is_one_of(meant, (value,)):
                yield where, f"write {meant!r}, not {value!r}"


def _unknown(name: str, space: SearchSpace) -> str:
    return f"no such parameter: '{name}'. {nearest(name, space.parameters)}"


def _has_numbers(name: str, space: SearchSpace) -> bool:
    domain = space.parameters[name].domain
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in domain)
