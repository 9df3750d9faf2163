"""How many tokens to draft at each concurrency, none included: tables from the launches that were measured. Pure.

One launch measures every concurrency level, so the table costs few launches of its own. Compared are assignments that
differ in nothing but the draft length, and the same one without speculation.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.spread import Spread, spread_of
from agent.store.trial import Trial
from agent.verdict import Comparison, Verdict, comparisons, interval_of_mean
from runners import LevelMeasurement
from search_spaces import Assignment, Facts, SearchSpace, assignment_key


@dataclass(frozen=True, slots=True)
class Cell:
    """One draft length at one concurrency level; means over the launches that count."""

    drafted: int
    """Tokens drafted for each verify pass; 0 without speculation."""
    tok_per_s: float
    low: float
    """Ends of the interval of tok_per_s, whose width is that of all repeated assignments at this level."""
    high: float
    step_ms: float
    """Time of one pass of the target with its drafting: what one emission of `acceptance_length` tokens takes."""
    acceptance_length: float
    """Tokens emitted for each pass of the target, 1.0 without speculation."""
    acceptance_per_position: tuple[float, ...]
    trials: tuple[int, ...]
    """Numbers of the launches behind it."""


@dataclass(frozen=True, slots=True)
class BreakEven:
    """What speculation would have to be, to be worth it, by measured step times."""

    drafted: int
    needed_acceptance: float
    """Tokens for each verify pass from which it pays: time of a verify pass over that of a pass without speculation."""
    acceptance: float
    affordable_ms: float
    """Longest that a verify pass may take to pay, with the acceptance that was measured."""
    step_ms: float

    @property
    def pays(self) -> bool:
        """True when more is accepted than a verify pass costs."""
        return self.acceptance > self.needed_acceptance


@dataclass(frozen=True, slots=True)
class LevelSchedule:
    """The answer for one concurrency level."""

    concurrency: int
    cells: tuple[Cell, ...]
    """By draft length, shortest first."""
    drafted: int
    """The draft length that served most."""
    comparison: Comparison | None
    """The best length with speculation against none; None where either was not measured, or nothing was repeated."""
    break_even: BreakEven | None
    """Of the best length with speculation; None where either it or no speculation was not measured."""

    @property
    def is_sure(self) -> bool:
        """True when speculation and none are told apart at this level."""
        return self.comparison is not None and self.comparison.verdict is not Verdict.NOT_SEPARABLE


@dataclass(frozen=True, slots=True)
class Schedule:
    """The draft length for each concurrency level, all else as in the winner."""

    levels: tuple[LevelSchedule, ...]
    members: Mapping[int, Trial]
    """Draft length → a launch with it."""

    @property
    def lengths(self) -> dict[int, int]:
        """Concurrency → tokens to draft."""
        return {level.concurrency: level.drafted for level in self.levels}


def family(space: SearchSpace, facts: Facts, like: Assignment, measured: Iterable[Assignment]) -> dict[int, Assignment]:
    """Return draft length → assignment, of those measured that equal `like` in everything but the draft length.

    Where `like` is without speculation, the kind of speculation is that of the first measured one beside it.
    """
    base, others = _without(space, facts, like), _others(space)
    alike = (each for each in measured if all(each[name] == like[name] for name in others))  # cheap, and rules out most
    beside = [each for each in alike if _without(space, facts, each) == base]
    speculating = [each for each in (like, *beside) if space.num_drafted(each, facts)]
    found = {0: base} if base in beside else {}
    if speculating:
        kind = _kind(space, speculating[0])
        members = (each for each in beside if space.num_drafted(each, facts) and _kind(space, each) == kind)
        found |= {space.num_drafted(each, facts) or 0: each for each in members}
    return dict(sorted(found.items()))


def schedule_of(
    space: SearchSpace, facts: Facts, trials: Sequence[Trial], winner: Assignment, baseline_key: str | None
) -> Schedule | None:
    """Return the schedule around the winner, or None where fewer than two draft lengths were measured.

    Args:
        space: The study's space.
        facts: Its node's facts.
        trials: All launches, in order.
        winner: The assignment whose other values are kept.
        baseline_key: Key of the baseline, which was not chosen for its value, so that its first launch counts.
    """
    launches: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.is_measured and _levels(trial):
            launches.setdefault(trial.work.key, []).append(trial)
    by_value = sorted(launches.values(), key=lambda group: -_value(group[0]))
    members = family(space, facts, winner, [group[0].work.resolved for group in by_value])
    if len(members) < 2:
        return None
    counting = {key: group if key == baseline_key else group[1:] or group for key, group in launches.items()}
    repeated = [group for key, group in counting.items() if len(group) > 1]
    chosen = {drafted: counting[assignment_key(each)] for drafted, each in members.items()}
    first = {drafted: group[0] for drafted, group in chosen.items()}
    levels = sorted({level.concurrency for group in chosen.values() for level in _levels(group[0])})
    return Schedule(tuple(_at(level, chosen, repeated) for level in levels), first)


def _at(concurrency: int, chosen: Mapping[int, list[Trial]], repeated: Sequence[list[Trial]]) -> LevelSchedule:
    seen = {drafted: _figures(group, concurrency) for drafted, group in chosen.items()}
    rates = {drafted: [level.output_tok_per_s for level in figures] for drafted, figures in seen.items() if figures}
    others = [[level.output_tok_per_s for level in _figures(group, concurrency)] for group in repeated]
    spread = spread_of(others)
    cells = tuple(_cell(drafted, chosen[drafted], seen[drafted], rates[drafted], spread) for drafted in rates)
    best = max(cells, key=lambda cell: cell.tok_per_s)
    speculating = [cell for cell in cells if cell.drafted]
    plain = next((cell for cell in cells if not cell.drafted), None)
    top = max(speculating, key=lambda cell: cell.tok_per_s, default=None)
    if plain is None or top is None:
        return LevelSchedule(concurrency, cells, best.drafted, None, None)
    against = comparisons(
        rates[0], {str(cell.drafted): rates[cell.drafted] for cell in speculating}, others=_apart(others, rates)
    )
    return LevelSchedule(concurrency, cells, best.drafted, against.get(str(top.drafted)), _break_even(top, plain))


def _apart(groups: Sequence[list[float]], rates: Mapping[int, list[float]]) -> list[list[float]]:
    """The groups that are not among those compared: each group tells of the spread once."""
    return [group for group in groups if group not in rates.values()]


def _cell(
    drafted: int, trials: Sequence[Trial], figures: Sequence[LevelMeasurement], rates: Sequence[float], spread: Spread
) -> Cell:
    low, high = interval_of_mean(rates, spread)
    positions = [level.acceptance_per_position for level in figures]
    return Cell(
        drafted=drafted,
        tok_per_s=statistics.geometric_mean(rates),
        low=low,
        high=high,
        step_ms=statistics.fmean(level.step_ms_p50 for level in figures),
        acceptance_length=statistics.fmean(level.acceptance_length for level in figures),
        acceptance_per_position=tuple(statistics.fmean(column) for column in zip(*positions, strict=False) if drafted),
        trials=tuple(trial.number for trial in trials),
    )


def _break_even(top: Cell, plain: Cell) -> BreakEven:
    return BreakEven(
        drafted=top.drafted,
        needed_acceptance=top.step_ms / plain.step_ms if plain.step_ms else 0.0,
        acceptance=top.acceptance_length,
        affordable_ms=plain.step_ms * top.acceptance_length,
        step_ms=top.step_ms,
    )


def _figures(trials: Iterable[Trial], concurrency: int) -> list[LevelMeasurement]:
    return [level for trial in trials for level in _levels(trial) if level.concurrency == concurrency]


def _levels(trial: Trial) -> tuple[LevelMeasurement, ...]:
    measurement = trial.record.measurement if trial.record is not None else None
    return measurement.levels if measurement is not None else ()


def _value(trial: Trial) -> float:
    return trial.outcome.value or 0.0 if trial.outcome is not None else 0.0


def _without(space: SearchSpace, facts: Facts, assignment: Assignment) -> Assignment:
    return space.normalise({**assignment, **space.baseline}, facts)


def _others(space: SearchSpace) -> list[str]:
    """Return the parameters that are the same with and without speculation, whatever else is chosen."""
    changed = {*space.baseline, *space.draft_length_names}
    changed |= {relation.forced.parameter for relation in space.relations if relation.forced is not None}
    for name, each in space.parameters.items():  # what a parameter depends on stands above it
        if changed & set(each.active_when):
            changed.add(name)
    return [name for name in space.parameters if name not in changed]


def _kind(space: SearchSpace, assignment: Assignment) -> Assignment:
    return {name: value for name, value in assignment.items() if name not in space.draft_length_names}
