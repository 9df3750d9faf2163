"""What worked at each rung: whole assignments for experiments on the map, values and pairs for the chance to work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

from agent.deadends.claims import reaches
from agent.propose.parts import folded
from agent.store.trial import Trial
from runners import Rung
from search_spaces import Assignment

if TYPE_CHECKING:
    from agent.propose.history import History

MOST_WORKING = 512
"""Working assignments of a rung that experiments are made of."""
STEPS = 128
"""In how many steps a number of them doubles, of a study so long that the bound above matters."""
Value = tuple[str, str]
"""A parameter and the text of one of its values."""


def working_at(history: History, rung: Rung) -> dict[str, Assignment]:
    """Return key → resolved assignment of everything that worked at a rung or above it."""
    of = (history.trials, history.checks, history.probes)
    return history.memo.derived(f"working at {rung.value}", of, lambda: _together(_parts(history, rung)))


def latest_working_at(history: History, rung: Rung) -> dict[str, Assignment]:
    """Return the same, of a long study the latest: experiments are made of these.

    Of a long study it is what worked by the time that a 128th more had: else each launch would change all of it.
    """
    parts = _parts(history, rung)
    if sum(map(len, parts)) <= MOST_WORKING:
        return working_at(history, rung)
    numbers = [_in_steps(len(part)) for part in parts]
    ends = (_key_before(part, number) for part, number in zip(parts, numbers, strict=True))

    def latest() -> dict[str, Assignment]:
        found = _together([dict(islice(part.items(), number)) for part, number in zip(parts, numbers, strict=True)])
        return dict(islice(found.items(), max(0, len(found) - MOST_WORKING), None))

    return history.memo.derived(f"latest at {rung.value}", (*numbers, *ends), latest)


def _in_steps(number: int) -> int:
    """Return a number without what came since it last grew by a 128th."""
    return number - number % max(1, number // STEPS)


def _key_before(part: dict[str, Assignment], number: int) -> str:
    """Return the last of so many first keys, or nothing where there are none."""
    return next(islice(reversed(part), len(part) - number, None), "")


def _together(parts: Sequence[dict[str, Assignment]]) -> dict[str, Assignment]:
    launches, checks, probes = parts
    return launches | checks | probes


def _parts(history: History, rung: Rung) -> list[dict[str, Assignment]]:
    """Return what worked of the launches, of the checks and of the probes."""

    def add(found: dict[str, Assignment], trial: Trial) -> None:
        if trial.works and reaches(trial.work.rung, rung):
            found[trial.work.key] = trial.work.resolved

    launches, probes, checks = folded(history, f"working at {rung.value}", dict, add, closed_only=True)
    return [launches, checks, probes]


def working_values(history: History, rung: Rung, names: tuple[str, ...]) -> set[Value]:
    """Return the values of these parameters with which something worked at a rung or above it."""
    return _working(history, rung, names, 1)


def working_pairs(history: History, rung: Rung, names: tuple[str, ...]) -> set[tuple[Value, Value]]:
    """Return the pairs of such values that worked together."""
    return _working(history, rung, names, 2)


def _working(history: History, rung: Rung, names: tuple[str, ...], size: int) -> set[Any]:
    def add(found: set[Any], trial: Trial) -> None:
        if trial.works and reaches(trial.work.rung, rung):
            listed = [(name, repr(trial.work.resolved[name])) for name in names]
            found.update(listed if size == 1 else combinations(listed, 2))

    name, of = f"{size} together at {rung.value}", (history.trials, history.probes, history.checks, *names)
    return history.memo.derived(name, of, lambda: set().union(*folded(history, name, set, add, closed_only=True)))


def served_values(history: History) -> set[Value]:
    """Return the values with which a launch served."""
    return history.memo.fold("served values", history.trials, set, _add_served(1), closed_only=True)


def served_pairs(history: History) -> set[tuple[Value, Value]]:
    """Return the pairs of values with which a launch served."""
    return history.memo.fold("served pairs", history.trials, set, _add_served(2), closed_only=True)


def _add_served(size: int) -> Callable[[set[Any], Trial], None]:
    def add(found: set[Any], trial: Trial) -> None:
        if trial.is_measured or (trial.is_slower and trial.outcome is not None and trial.outcome.value):
            listed = [(name, repr(value)) for name, value in trial.work.resolved.items()]
            found.update(listed if size == 1 else combinations(listed, 2))

    return add
