"""Planted failures and silent fallbacks of a generated node: chosen so that each of them can be seen and told apart."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from search_spaces.assignment import Assignment, Scalar
from search_spaces.failure_texts import AT_PROBE, FLAKY, TEXTS, FailureText
from search_spaces.generated_space import Chosen
from search_spaces.node_parts import Wanted

SAMPLES = 2000
LEAST_SHARE, MOST_SHARE = 0.42, 0.68
"""Of random assignments, the share that fails for certain; where between them is drawn for each node."""
LEAST_SEEN = 0.004
"""A failure is planted only where at least this share of random assignments fails for it and for nothing else."""
TRIES = 250
GREEDY = 3.0
"""How much more of the room that is left one failure may take than an equal part of it."""
LARGEST_SINGLE = 0.42
"""The same for a single condition, which cannot be made smaller."""
SINGLES = 0.2
"""Share of the failures that are planted first, as single conditions: one value that never works is the common case."""
PROBED = 0.35
"""Share of the failures whose parameters a probe can see."""
NAMED = 0.35
"""Share of the failures whose evidence names a parameter."""
_Written = dict[str, object]


class Planter:
    """Plants failures one after the other, with a sample of assignments to see what they do."""

    def __init__(self, rng: random.Random, parameters: Sequence[Chosen], *, must_spare_default: bool) -> None:
        self._rng = rng
        self._parameters = {each.template.name: each for each in parameters}
        self._must_spare_default = must_spare_default
        self._default: Assignment = {name: each.default for name, each in self._parameters.items()}
        self._safest: Assignment = {name: each.values[0] for name, each in self._parameters.items()}
        self._sample = [
            {name: rng.choice(each.values) for name, each in self._parameters.items()} for _ in range(SAMPLES)
        ]
        self._clauses: list[dict[str, Wanted]] = []
        self._dead: list[set[int]] = []
        self._texts = rng.sample(TEXTS, len(TEXTS))
        self._most = rng.uniform(LEAST_SHARE + 0.12, MOST_SHARE)

    def plant(self, number: int) -> tuple[list[_Written], list[_Written]]:
        """Return that many certain failures with one or two flaky ones, and one or two silent fallbacks."""
        no_ops = self._no_ops()
        failures: list[_Written] = []
        for index in range(number):
            missing = number - index
            when = self._conditions(missing, is_single=index < SINGLES * number)
            if when is not None:
                failures.append(self._failure(when, len(failures)))
        for _ in range(self._rng.randint(1, 2)):
            failures.append(self._flaky(len(failures)))
        return failures, no_ops

    def _conditions(self, missing: int, *, is_single: bool) -> dict[str, Wanted] | None:
        """Return conditions of a size that leads to the wanted share of failures, or None where none fit any more."""
        probed = [name for name, each in self._parameters.items() if each.template.seen_by_probe]
        for attempt in range(TRIES):
            names = probed if self._rng.random() < PROBED else list(self._parameters)
            size = 1 if is_single and attempt < TRIES // 2 else self._size(missing, attempt)
            clause = {name: self._wanted(self._parameters[name]) for name in self._rng.sample(names, size)}
            if self._fits(clause, missing):
                self._clauses.append(clause)
                self._dead.append(self._matching(clause))
                return clause
        return None

    def _size(self, missing: int, attempt: int) -> int:
        if attempt > TRIES // 2:
            return self._rng.choice((2, 3))
        share = len(set[int]().union(*self._dead)) / SAMPLES
        return 1 if share < LEAST_SHARE and missing <= 3 else self._rng.choices((1, 2, 3), (2, 4, 3))[0]

    def _wanted(self, chosen: Chosen) -> Wanted:
        values = chosen.values
        if chosen.template.monotone and len(values) > 2 and self._rng.random() < 0.75:
            place = self._rng.randint(1, len(values) - 1)
            return Wanted(at_least=values[place]) if self._rng.random() < 0.7 else Wanted(at_most=values[place - 1])
        return Wanted(values=(self._rng.choice(values),))

    def _fits(self, clause: Mapping[str, Wanted], missing: int) -> bool:
        """Spares what has to work, keeps apart from the others, and leaves room for those that are still missing."""
        spared = [self._safest, {**self._safest, "draft_length": self._default["draft_length"]}]
        spared += [self._default, {**self._default, "draft_length": 0}] if self._must_spare_default else []
        if any(_meets(clause, point) for point in spared):
            return False
        if "draft_length" in clause and _meets({"draft_length": clause["draft_length"]}, {"draft_length": 0}):
            return False
        if any(set(clause) <= set(other) or set(other) <= set(clause) for other in self._clauses):
            return False
        dead, known = self._matching(clause), set[int]().union(*self._dead)
        others = [before - dead for before in self._dead]
        room = self._most * SAMPLES - len(known)
        return LEAST_SEEN * SAMPLES <= len(dead - known) <= min(room, GREEDY * room / missing) and all(
            len(left) >= LEAST_SEEN * SAMPLES for left in others
        )

    def _matching(self, clause: Mapping[str, Wanted]) -> set[int]:
        return {index for index, point in enumerate(self._sample) if _meets(clause, point)}

    def _failure(self, when: Mapping[str, Wanted], index: int) -> _Written:
        at_probe = all(self._parameters[name].template.seen_by_probe for name in when)
        text = self._text(at_probe)
        named = self._rng.choice(list(when)) if text.names_parameter or self._rng.random() < NAMED else None
        rung = {"rung": "probe"} if at_probe and text.reason in AT_PROBE else {}
        return self._written(text, index, when, named) | rung

    def _text(self, at_probe: bool) -> FailureText:
        """Return the next text of the bank, one that a probe can show where the cause is one that it can see."""
        fitting = [text for text in self._texts if (text.reason in AT_PROBE) is at_probe]
        text = (fitting or self._texts or list(TEXTS))[0]
        if text in self._texts:
            self._texts.remove(text)
        return text

    def _flaky(self, index: int) -> _Written:
        text = self._rng.choice([text for text in TEXTS if text.reason in FLAKY])
        taken = set[str]().union(*self._clauses) if self._clauses else set()
        free = [each for name, each in self._parameters.items() if name not in taken] or [*self._parameters.values()]
        chosen = self._rng.choice(free)
        when = {chosen.template.name: Wanted(values=(self._rng.choice(chosen.values),))}
        probability = round(self._rng.uniform(0.2, 0.5), 2)
        return self._written(text, index, when, None) | {"probability": probability}

    def _written(self, text: FailureText, index: int, when: Mapping[str, Wanted], named: str | None) -> _Written:
        places = {"rank": self._rng.randrange(2), "second": self._rng.randint(10, 59), "flag": "", "value": ""}
        lines = list(text.lines)
        if named is not None:
            places |= {"flag": self._parameters[named].flag, "value": _shown(when[named])}
            lines[:0] = [] if text.names_parameter else ["[2026-03-02 09:14:{second}] while {flag} is {value}:"]
        return {
            "name": f"{text.reason}-{index}",
            "when": {name: wanted.model_dump(exclude_none=True) for name, wanted in when.items()}
            | {name: list(wanted.values) for name, wanted in when.items() if wanted.values is not None},
            "reason": text.reason,
            "phase": text.phase,
            "seconds": text.seconds,
            "log": [line.format(**places) for line in lines],
            "exit": {"code": text.code, "signal": text.signal, "cause": text.cause},
            "blames": [named] if named is not None else [],
        }

    def _no_ops(self) -> list[_Written]:
        """Values of unordered parameters that the engine replaces by the first one; they belong to no failure."""
        fitting = [each for each in self._parameters.values() if each.template.is_categorical and len(each.values) > 2]
        found: list[_Written] = []
        for chosen in self._rng.sample(fitting, min(len(fitting), self._rng.randint(1, 2))):
            value = self._rng.choice([value for value in chosen.values[1:] if value != chosen.default] or [None])
            if value is None:
                continue
            name = chosen.template.name
            self._keep_alive(name, value)
            found.append(
                {
                    "when": {name: [value]},
                    "resolved": {name: chosen.values[0]},
                    "why": f"{chosen.flag} {value} is not available here, falling back to {chosen.values[0]}",
                    "seen": self._rng.choice(("resolve", "effects")),
                }
            )
        return found

    def _keep_alive(self, name: str, value: Scalar) -> None:
        """Take a value out of the sample and of what failures may ask for: what it runs as decides."""
        chosen = self._parameters[name]
        left = tuple(each for each in chosen.values if each != value)
        self._parameters[name] = Chosen(chosen.template, left, chosen.default)
        for point in self._sample:
            if point[name] == value:
                point[name] = chosen.values[0]


def _meets(clause: Mapping[str, Wanted], point: Mapping[str, Scalar]) -> bool:
    return all(wanted.holds_for(point[name]) for name, wanted in clause.items())


def _shown(wanted: Wanted) -> str:
    values = wanted.values if wanted.values is not None else wanted.bounds
    return str(values[0]).lower()
