"""The conditions a dead end may consist of, numbered, so that evidence about them is kept as bits."""

from __future__ import annotations

from search_spaces import Comparison, Condition, Scalar, SearchSpace

EQUAL_ONLY = 1.0
FAMILY_WEIGHTS = {Comparison.AT_LEAST: 0.65, Comparison.AT_MOST: 0.2, Comparison.EQUAL: 0.15}
"""How likely a cause on an ordered parameter asks too much, asks too little, or means one value alone."""


class Lexicon:
    """All conditions that values of a space satisfy. Grows by itself where an engine resolved to a value of its own."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._conditions: list[Condition] = []
        self._numbers: dict[tuple[str, Comparison, str], int] = {}
        self._satisfied: dict[tuple[str, str], tuple[int, ...]] = {}
        self._parameters: list[str] = []
        self._widths: list[int] = []
        self._texts: list[str] = []
        self._families: list[int] = []
        self._weights: list[float] = []
        self._family_numbers: dict[tuple[str, Comparison], int] = {}
        for name, parameter in space.parameters.items():  # numbered by the space, not by what was seen first
            for value in parameter.domain:
                self.satisfied(name, value)

    def satisfied(self, name: str, value: Scalar) -> tuple[int, ...]:
        """Return the numbers of the conditions on parameter `name` that this value satisfies."""
        key = (name, repr(value))
        found = self._satisfied.get(key)
        if found is None:
            found = self._satisfied[key] = tuple(self._number(each) for each in self._conditions_of(name, value))
        return found

    def condition(self, number: int) -> Condition:
        """Return the condition of this number."""
        return self._conditions[number]

    def parameter(self, number: int) -> str:
        """Return the name of the parameter that the condition of this number is about."""
        return self._parameters[number]

    def width(self, number: int) -> int:
        """Return how many values of its parameter satisfy the condition: the fewer, the less it claims."""
        return self._widths[number]

    def family(self, number: int) -> int:
        """Return the number of the family of conditions, on one parameter, that differ in their thresholds alone."""
        return self._families[number]

    def later(self, number: int) -> int | None:
        """Return the number of the same limit, beginning one value further on; None where there is none."""
        condition = self._conditions[number]
        if condition.comparison is Comparison.EQUAL:
            return None
        numbers = (each for each in self._space.parameters[condition.parameter].domain if not isinstance(each, str))
        inside = sorted((each for each in numbers if condition.matches({condition.parameter: each})), key=float)
        inside = inside[1:] if condition.comparison is Comparison.AT_LEAST else inside[:-1]
        if not inside:
            return None
        edge = inside[0] if condition.comparison is Comparison.AT_LEAST else inside[-1]
        found = self._numbers.get((condition.parameter, condition.comparison, repr(edge)))
        return self._numbers.get((condition.parameter, Comparison.EQUAL, repr(edge))) if found is None else found

    def text(self, number: int) -> str:
        """Return the condition in words."""
        return self._texts[number]

    def weight(self, number: int) -> float:
        """Return how likely a cause has this form, before any evidence."""
        return self._weights[number]

    def _number(self, condition: Condition) -> int:
        key = (condition.parameter, condition.comparison, repr(condition.value))
        if key not in self._numbers:
            self._numbers[key] = len(self._conditions)
            self._conditions.append(condition)
            self._parameters.append(condition.parameter)
            parameter, family = self._space.parameters[condition.parameter], (condition.parameter, condition.comparison)
            domain = parameter.domain
            self._texts.append(str(condition))
            self._families.append(self._family_numbers.setdefault(family, len(self._family_numbers)))
            self._weights.append(FAMILY_WEIGHTS[condition.comparison] if parameter.monotone else EQUAL_ONLY)
            self._widths.append(sum(condition.matches({condition.parameter: value}) for value in domain))
        return self._numbers[key]

    def _conditions_of(self, name: str, value: Scalar) -> list[Condition]:
        """One condition for each set of values: the largest value alone is "at least" it, the smallest just equal."""
        equal = Condition(parameter=name, value=value)
        if not self._space.parameters[name].monotone or isinstance(value, str):
            return [equal]
        numbers = (each for each in self._space.parameters[name].domain if not isinstance(each, str))
        ordered = sorted(numbers, key=float)
        at_least = [limit for limit in ordered[1:] if float(limit) <= float(value)]
        at_most = [limit for limit in ordered[1:-1] if float(limit) >= float(value)]
        return [
            *([] if value == ordered[-1] and len(ordered) > 1 else [equal]),
            *(Condition(parameter=name, comparison=Comparison.AT_LEAST, value=limit) for limit in at_least),
            *(Condition(parameter=name, comparison=Comparison.AT_MOST, value=limit) for limit in at_most),
        ]
