"""One tunable parameter: its values, its default, when it is active, and how the engine is told."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from search_spaces.assignment import Facts, Scalar, is_one_of
from search_spaces.scalar import StrictScalar
from search_spaces.switches import SpaceModel, Switches, SwitchTable, value_text

MAX_VALUES = 10_000
"""A range with more values is a mistake: no search tries as many, and they are listed one by one."""


class IntRange(SpaceModel):
    """A range of integers, both ends included."""

    low: int
    high: int
    step: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _is_ordered(self) -> IntRange:
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) is greater than high ({self.high}): swap them")
        if (self.high - self.low) // self.step >= MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES} values from {self.low} to {self.high}: give a larger 'step'")
        return self


class DefaultWhere(SpaceModel):
    """The default on nodes whose facts match."""

    facts: Mapping[str, StrictScalar]
    value: StrictScalar


class NearVariant(SpaceModel):
    """What may work in the place of a value that turned out dead: the same intent, spelled or built differently."""

    value: StrictScalar
    """The value that may be dead."""
    instead: Mapping[str, StrictScalar]
    """Parameter → value to try in its place, usually another value of the same parameter."""
    why: str


class Parameter(SpaceModel):
    """A tunable parameter. The order of the parameters in a space is their order of expected effect, largest first."""

    meaning: str
    unit: str | None = None
    source: str
    """Software and version from which the values and their meaning are known."""
    versions: str | None = None
    """Engine versions that have it, such as `SGLang 0.5.6 to 0.5.23`; None for all."""
    values: tuple[StrictScalar, ...] | None = None
    range: IntRange | None = None
    default: StrictScalar
    default_where: tuple[DefaultWhere, ...] = ()
    flag: str | None = None
    """Long option name, without dashes, that takes the value."""
    env: str | None = None
    """Environment variable that takes the value."""
    switches: SwitchTable = Field(default_factory=dict)
    """Value → all that selects exactly it. Beside `flag` or `env` it holds the values that are said otherwise."""
    unset: StrictScalar | None = None
    """The value that means: say nothing."""
    active_when: Mapping[str, tuple[StrictScalar, ...]] = Field(default_factory=dict)
    """Other parameters' values with which this one has a meaning; otherwise it stands at its default."""
    active_where: Mapping[str, tuple[StrictScalar, ...]] = Field(default_factory=dict)
    """Facts of the node with which this one has a meaning."""
    seen_by_probe: bool = False
    """Whether a probe of the collectives can tell its values apart."""
    effect_beyond_collectives: bool = False
    """Whether it changes more than the collectives, so that a probe alone cannot judge its values."""
    monotone: bool = False
    """Ordered by demand: what fails because a value asks too much fails with every greater value. The `unset` value
    may be a word; it then stands outside the order."""
    near: tuple[NearVariant, ...] = ()
    """Near variants of its values: probed once when the value turned out dead, as escapes from the dead end."""
    locked: tuple[StrictScalar, ...] = ()
    """Values that are tried as escapes only; one that works there is then searched like any other."""
    proof: str | None = None
    """How it is proven that the value took effect."""

    @model_validator(mode="after")
    def _has_one_domain(self) -> Parameter:
        if (self.values is None) == (self.range is None):
            raise ValueError("needs exactly one of 'values' and 'range'")
        texts = {value_text(value) for value in self.domain}
        if len(texts) != len(self.domain) or len(set(self.domain)) != len(self.domain):
            raise ValueError("a value stands in 'values' twice, or two of them read the same (1 and true, x and X)")
        for value in (self.default, *(entry.value for entry in self.default_where)):
            if not is_one_of(value, self.domain):
                raise ValueError(f"default {value!r} is not one of its values {list(self.domain)}")
        for value in (*self.locked, *(variant.value for variant in self.near)):
            if not is_one_of(value, self.domain):
                raise ValueError(f"{value!r} of 'near' or 'locked' is not one of its values {list(self.domain)}")
        if is_one_of(self.default, self.locked):
            raise ValueError(f"the default {self.default!r} is locked: lock another value")
        ordered = [value for value in self.domain if not is_one_of(value, () if self.unset is None else (self.unset,))]
        if self.monotone and not all(isinstance(value, int | float) for value in ordered):
            raise ValueError("'monotone' needs values that are numbers, but for the one of 'unset'")
        return self

    @model_validator(mode="after")
    def _can_be_said(self) -> Parameter:
        if self.flag is not None and self.env is not None:
            raise ValueError("needs one of 'flag' and 'env', not both: 'switches' says a value with several")
        silent = None if self.unset is None else value_text(self.unset)
        texts = [value_text(value) for value in self.domain]
        for key in self.switches:
            if key not in texts or key == silent:
                raise ValueError(f"'switches' has '{key}', which is 'unset' or none of its values {list(self.domain)}")
        missing = [text for text in texts if text not in self.switches and text != silent]
        if self.flag is None and self.env is None and missing:
            if not self.switches:
                raise ValueError("needs one of 'flag', 'env' and 'switches'")
            raise ValueError(f"'switches' has no entry for {missing[0]}: write {missing[0]}: {{}} if it needs none")
        said = [entry.model_dump_json() for entry in self.switches.values()]
        if len(set(said)) < len(said) or (silent is not None and Switches().model_dump_json() in said):
            raise ValueError("two values have the same switches: the engine could not tell them apart")
        return self

    @property
    def domain(self) -> tuple[Scalar, ...]:
        """Every value that may ever be tried, in order."""
        if self.range is not None:
            return tuple(range(self.range.low, self.range.high + 1, self.range.step))
        return self.values or ()

    def text(self, value: Scalar) -> str | None:
        """Return the value as the engine reads it, or None when it is said by leaving the flag or variable alone."""
        if self.unset is not None and is_one_of(value, (self.unset,)):
            return None
        if isinstance(value, bool):
            return "on" if value else "off"
        return str(value)

    def switches_of(self, value: Scalar) -> Switches:
        """Return everything that must be said to the engine for this value."""
        if (special := self.switches.get(value_text(value))) is not None:
            return special
        text = self.text(value)
        if text is None:
            return Switches()
        return Switches(flags={self.flag: text}) if self.flag else Switches(env={str(self.env): text})

    @property
    def flag_names(self) -> tuple[str, ...]:
        """Every long option that some value of it sets, without dashes."""
        special = (name for entry in self.switches.values() for name in entry.flags)
        return tuple(dict.fromkeys((*((self.flag,) if self.flag else ()), *special)))

    @property
    def env_names(self) -> tuple[str, ...]:
        """Every environment variable that some value of it sets."""
        special = (name for entry in self.switches.values() for name in entry.env)
        return tuple(dict.fromkeys((*((self.env,) if self.env else ()), *special)))

    def default_on(self, facts: Facts) -> Scalar:
        """Return the default on a node with these facts."""
        for entry in self.default_where:
            if all(facts.get(name) == value for name, value in entry.facts.items()):
                return entry.value
        return self.default

    def can_vary(self, facts: Facts) -> bool:
        """Return whether there is anything to choose on a node with these facts."""
        has_meaning = all(is_one_of(facts.get(name), allowed) for name, allowed in self.active_where.items())
        return has_meaning and len(self.domain) > 1

    def is_active(self, assignment: Mapping[str, Scalar], facts: Facts) -> bool:
        """Return whether the parameter has a meaning beside these values on a node with these facts."""
        for name, allowed in self.active_where.items():
            if not is_one_of(facts.get(name), allowed):
                return False
        return self.goes_with(assignment)

    def goes_with(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether the parameter has a meaning beside these values, whatever the node."""
        return all(is_one_of(assignment.get(name), allowed) for name, allowed in self.active_when.items())
