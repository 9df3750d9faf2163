"""A search space: parameters, relations between them, the baseline, and what to fall back to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from pydantic import Field

from search_spaces.assignment import Assignment, Facts, Scalar, is_one_of
from search_spaces.errors import SpecificationError, nearest
from search_spaces.parameter import IntRange, Parameter, SpaceModel, StrictScalar
from search_spaces.relation import Relation


class SearchSpace(SpaceModel):
    """Everything that may be tuned on one engine. Immutable; narrowing gives a new space."""

    engine: str
    revision: int = 1
    parameters: Mapping[str, Parameter]
    relations: tuple[Relation, ...] = ()
    baseline: Mapping[str, StrictScalar] = Field(default_factory=dict)
    """What turns an assignment into the baseline, e.g. no speculation."""
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

    @property
    def env_names(self) -> dict[str, str]:
        """Environment variable → parameter name."""
        return {parameter.env: name for name, parameter in self.parameters.items() if parameter.env}

    @property
    def flag_names(self) -> dict[str, str]:
        """Long option, with its dashes → parameter name."""
        return {f"--{parameter.flag}": name for name, parameter in self.parameters.items() if parameter.flag}

    def default_on(self, facts: Facts) -> Assignment:
        """Return the engine's default assignment on a node with these facts."""
        return {name: parameter.default_on(facts) for name, parameter in self.parameters.items()}

    def normalise(self, assignment: Mapping[str, Scalar], facts: Facts) -> Assignment:
        """Return the assignment with inactive parameters at their defaults, so that equal launches have equal text."""
        result = dict(assignment)
        for name, parameter in self.parameters.items():
            if not parameter.is_active(result, facts):
                result[name] = parameter.default_on(facts)
        return {name: result[name] for name in self.parameters}

    def options(self, assignment: Mapping[str, Scalar]) -> dict[str, str]:
        """Return long option name → text, for the parameters that the engine takes as flags."""
        return self._rendered(assignment, env=False)

    def environment(self, assignment: Mapping[str, Scalar]) -> dict[str, str]:
        """Return environment variable → text, for the parameters that the engine takes from its environment."""
        return self._rendered(assignment, env=True)

    def _rendered(self, assignment: Mapping[str, Scalar], *, env: bool) -> dict[str, str]:
        rendered: dict[str, str] = {}
        for name, parameter in self.parameters.items():
            target, text = parameter.env if env else parameter.flag, parameter.text(assignment[name])
            if target is not None and text is not None:
                rendered[target] = text
        return rendered

    def violation(self, assignment: Mapping[str, Scalar]) -> str | None:
        """Return why the assignment breaks a relation, or None."""
        for relation in self.relations:
            if not relation.holds(assignment):
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
            if is_one_of(value, (candidate,)) or (isinstance(value, str) and _text(candidate) == value.lower()):
                return candidate
        shown = ", ".join(_text(candidate) for candidate in domain)
        raise SpecificationError(f"{value!r} is not one of its values: {shown}", key=name)

    def narrowed(self, pins: Mapping[str, Scalar], excludes: Mapping[str, tuple[Scalar, ...]]) -> SearchSpace:
        """Return the space with some parameters pinned to one value and some values taken out.

        Raises:
            SpecificationError: when nothing is left of a parameter or of a relation, or the defaults that are left
                break one.
        """
        parameters = dict(self.parameters)
        for name, value in pins.items():
            parameters[name] = _restricted(parameters[name], (value,), name)
        for name, values in excludes.items():
            kept = tuple(value for value in parameters[name].domain if not is_one_of(value, values))
            parameters[name] = _restricted(parameters[name], kept, name)
        fallbacks = tuple(_within(fallback, parameters) for fallback in self.fallbacks)
        space = self.model_copy(
            update={
                "parameters": parameters,
                "baseline": _within(self.baseline, parameters),
                "fallbacks": tuple(fallback for fallback in fallbacks if fallback),
            }
        )
        for relation in space.relations:
            space.check_satisfiable(relation)
        if problem := space.violation(space.default_on({})):
            raise SpecificationError(f"the defaults that are left break a relation: {problem}. Pin one of them")
        return space

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


def _text(value: Scalar) -> str:
    return str(value).lower()


def _restricted(parameter: Parameter, values: tuple[Scalar, ...], name: str) -> Parameter:
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


def _within(overrides: Mapping[str, Scalar], parameters: Mapping[str, Parameter]) -> dict[str, Scalar]:
    return {name: value for name, value in overrides.items() if value in parameters[name].domain}
