"""A search space: parameters, relations between them, the baseline, and what to fall back to."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from pydantic import Field

from search_spaces.assignment import Assignment, Facts, Scalar, is_one_of
from search_spaces.errors import MOST_NAME_CHARS, SpecificationError, listed, nearest, shortened
from search_spaces.narrowing import restricted, within
from search_spaces.parameter import Parameter
from search_spaces.relation import Relation
from search_spaces.scalar import StrictScalar
from search_spaces.switches import SpaceModel, Switches, spelled, value_text


class SearchSpace(SpaceModel):
    """Everything that may be tuned on one engine. Immutable; narrowing gives a new space."""

    engine: str
    revision: int = 1
    parameters: Mapping[str, Parameter]
    relations: tuple[Relation, ...] = ()
    baseline: Mapping[str, StrictScalar] = Field(default_factory=dict)
    """What turns an assignment into the baseline, e.g. no speculation."""
    draft_lengths: tuple[str, ...] = ()
    """Parameters that say how many tokens are drafted for each verify pass: the first one that is active counts. None
    given: the numbers that the baseline sets to 0."""
    fallbacks: tuple[Mapping[str, StrictScalar], ...] = ()
    """Safer settings, added one after the other when the engine's default does not work."""

    @property
    def fingerprint(self) -> str:
        """Key of the space's content; two studies may share a name only when theirs are equal."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def probe_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that a probe can tell apart."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.seen_by_probe)

    def varying(self, facts: Facts) -> tuple[str, ...]:
        """Return the parameters of which there is something to choose on a node with these facts.

        Left out is what has no meaning on such a node, or beside none of the values that are left of the others.
        """
        names = set(self.parameters)
        while True:  # what goes may take others with it
            kept = {name for name in names if self._can_vary(self.parameters[name], names, facts)}
            if kept == names:
                return tuple(name for name in self.parameters if name in names)
            names = kept

    def _can_vary(self, parameter: Parameter, others: Collection[str], facts: Facts) -> bool:
        possible = {
            name: self.parameters[name].domain if name in others else (self.parameters[name].default_on(facts),)
            for name in parameter.active_when
        }
        has_meaning = all(
            any(is_one_of(value, allowed) for value in possible[name])
            for name, allowed in parameter.active_when.items()
        )
        return has_meaning and parameter.can_vary(facts)

    @property
    def draft_length_names(self) -> tuple[str, ...]:
        """Names of the parameters that say how many tokens are drafted, the one that counts first."""
        zeros = (name for name, value in self.baseline.items() if value == 0 and not isinstance(value, bool))
        return self.draft_lengths or tuple(zeros)

    def num_drafted(self, assignment: Mapping[str, Scalar], facts: Facts) -> int | None:
        """Return how many tokens an assignment drafts for each verify pass, 0 as the baseline, None if nobody says."""
        if self.normalise({**assignment, **self.baseline}, facts) == self.normalise(assignment, facts):
            return 0
        active = (name for name in self.draft_length_names if self.parameters[name].is_active(assignment, facts))
        values = [value for name in active if isinstance(value := assignment[name], int)]
        return int(values[0]) if values else None

    @property
    def env_names(self) -> dict[str, str]:
        """Environment variable → name of its parameter, or of the first one that sets it among others."""
        among = {env: name for name, each in reversed(list(self.parameters.items())) for env in each.env_names}
        return among | {each.env: name for name, each in self.parameters.items() if each.env}

    @property
    def flag_names(self) -> dict[str, str]:
        """Long option, with its dashes → name of its parameter, or of the first one that sets it among others."""
        among = {
            f"--{flag}": name for name, each in reversed(list(self.parameters.items())) for flag in each.flag_names
        }
        return among | {f"--{each.flag}": name for name, each in self.parameters.items() if each.flag}

    @property
    def unproven(self) -> tuple[str, ...]:
        """Names of the parameters of which nobody can tell afterwards whether they took effect."""
        return tuple(name for name, parameter in self.parameters.items() if not parameter.proof)

    def default_on(self, facts: Facts) -> Assignment:
        """Return the engine's default assignment on a node with these facts."""
        return {name: parameter.default_on(facts) for name, parameter in self.parameters.items()}

    def normalise(self, assignment: Mapping[str, Scalar], facts: Facts) -> Assignment:
        """Return the assignment as the engine runs it, so that equal launches have equal text.

        Inactive parameters stand at their defaults, forced ones at the value that the engine sets (where that is one
        of their values; where it is none, the relation is broken and `violation` says so).
        """
        values = tuple(assignment[name] for name in self.parameters)
        return dict(_normal_form(_Same(self), _Same(facts), values))

    def _normal(self, values: tuple[Scalar, ...], facts: Facts) -> Assignment:
        assignment = dict(zip(self.parameters, values, strict=True))
        result = self._settled(assignment, facts)
        for relation in self.relations:
            value, forced = relation.forced_value(result, facts), relation.forced
            if forced is None or value is None or not self.parameters[forced.parameter].is_active(result, facts):
                continue
            if is_one_of(value, self.parameters[forced.parameter].domain):
                result[forced.parameter] = value
        return self._settled(result, facts)

    def _settled(self, assignment: Assignment, facts: Facts) -> Assignment:
        result = dict(assignment)
        for name, parameter in self.parameters.items():
            is_conditional = parameter.active_when or parameter.active_where  # most are not: asked for every candidate
            if is_conditional and not parameter.is_active(result, facts):
                result[name] = parameter.default_on(facts)
        return result

    def options(self, assignment: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return long option name → its text, or true for a bare flag, for everything the engine takes as options.

        Nothing is said about a parameter that has no meaning beside the other values.
        """
        return {flag: text for said in self._said(assignment) for flag, text in said.flags.items()}

    def environment(self, assignment: Mapping[str, Scalar]) -> dict[str, str]:
        """Return environment variable → text, for everything the engine takes from its environment."""
        return {variable: text for said in self._said(assignment) for variable, text in said.env.items()}

    def _said(self, assignment: Mapping[str, Scalar]) -> Iterator[Switches]:
        for name, parameter in self.parameters.items():
            if parameter.goes_with(assignment):
                yield parameter.switches_of(assignment[name])

    def violation(self, assignment: Mapping[str, Scalar], facts: Facts | None = None) -> str | None:
        """Return why the assignment breaks a relation on a node with these facts, or None."""
        for relation in self.relations:
            if not relation.holds(assignment, facts):
                values = ", ".join(f"{name}={assignment[name]}" for name in relation.parameters)
                return f"{values}: {relation.why}"
        return None

    def check(self, assignment: Mapping[str, Scalar]) -> None:
        """Raise SpecificationError for an unknown parameter, a value outside its domain, or a broken relation."""
        for name, value in assignment.items():
            self.parse_value(name, value)
        if set(assignment) == set(self.parameters) and (problem := self.violation(assignment)):
            raise SpecificationError(problem)

    def parse_value(self, name: str, value: object) -> Scalar:
        """Return the domain value that `value` (perhaps typed as text on the command line) stands for."""
        if name not in self.parameters:
            raise SpecificationError(f"no such parameter. {nearest(name, self.parameters)}", key=name)
        domain = self.parameters[name].domain
        for candidate in domain:
            if is_one_of(value, (candidate,)) or (isinstance(value, str) and value_text(candidate) == value.lower()):
                return candidate
        shown = listed(map(spelled, domain))
        raise SpecificationError(
            f"{shortened(repr(value), MOST_NAME_CHARS)} is not one of its values: {shown}", key=name
        )

    def narrowed(self, pins: Mapping[str, Scalar], excludes: Mapping[str, tuple[Scalar, ...]]) -> SearchSpace:
        """Return the space with some parameters pinned to one value and some values taken out.

        Raises:
            SpecificationError: when nothing is left of a parameter or of a relation, or the defaults that are left
                break one.
        """
        parameters = dict(self.parameters)
        for name, value in pins.items():
            parameters[name] = restricted(parameters[name], (value,), name)
        for name, values in excludes.items():
            kept = tuple(value for value in parameters[name].domain if not is_one_of(value, values))
            parameters[name] = restricted(parameters[name], kept, name)
        fallbacks = tuple(within(fallback, parameters) for fallback in self.fallbacks)
        space = self.model_copy(
            update={
                "parameters": parameters,
                "baseline": within(self.baseline, parameters),
                "fallbacks": tuple(fallback for fallback in fallbacks if fallback),
            }
        )
        for relation in space.relations:
            space.check_satisfiable(relation)
        if problem := space.violation(space.default_on({})):
            raise SpecificationError(f"the defaults that are left break a relation: {problem}. Pin one of them")
        return space

    def starting_at(self, assignment: Mapping[str, Scalar]) -> SearchSpace:
        """Return the space with these values as defaults, whatever the node; a locked one is meant, so it is open."""
        parameters = dict(self.parameters)
        for name, value in assignment.items():
            locked = tuple(each for each in parameters[name].locked if not is_one_of(each, (value,)))
            update = {"default": value, "default_where": (), "locked": locked}
            parameters[name] = parameters[name].model_copy(update=update)
        return self.model_copy(update={"parameters": parameters})

    def check_satisfiable(self, relation: Relation) -> None:
        """Raise SpecificationError when no values of the parameters can satisfy the relation."""
        names = relation.parameters
        if not relation.can_hold({name: self.parameters[name].domain for name in names}):
            raise SpecificationError(f"no values of {', '.join(names)} can satisfy this relation ({relation.why})")

    def single_changes(self, base: Mapping[str, Scalar], names: tuple[str, ...] | None = None) -> Iterator[Assignment]:
        """Yield every assignment that differs from `base` in one parameter, in the order of expected effect."""
        for name in names if names is not None else tuple(self.parameters):
            for value in self.parameters[name].domain:
                if not is_one_of(value, (base[name],)):
                    yield {**base, name: value}


_T = TypeVar("_T")


@dataclass(frozen=True, eq=False, slots=True)
class _Same(Generic[_T]):
    """Something that is only equal to itself, so that it can be a key; the key keeps it alive."""

    it: _T

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


@lru_cache(maxsize=1 << 14)
def _normal_form(space: _Same[SearchSpace], facts: _Same[Facts], values: tuple[Scalar, ...]) -> Assignment:
    """A search asks for the same neighbours of its leaders again and again."""
    return space.it._normal(values, facts.it)
