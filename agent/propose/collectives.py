"""Step 4: the collectives, searched where they are cheap. What a probe can see is settled at the probe rung.

Three waves: every single change from the base, then combinations of the changes that helped, then around the best until
no change helps. The launches that follow know the communication time of what was probed (`communication`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from agent.propose import prices, tallies
from agent.propose.history import History
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Scalar, changed_parameters

BATCH = 8
"""Probes handed out together: few enough that what one batch rules out saves probes of the next."""
MOST_LOST = 2 * BATCH
"""Probes in a row that may go without an answer before no more are run."""
HELPED = 0.97
"""A change helped when it cut the communication time to this share or less."""


def propose(history: History) -> tuple[Work, ...]:
    """Return the next batch of probes, or nothing when the collectives are settled or the share is spent."""
    if Rung.PROBE not in history.rungs or not history.space.probe_parameters or history.base is None:
        return ()
    if any(trial.work.kind is Kind.SEARCH for trial in history.trials if trial.work.base):
        return ()  # settled: the launches that build on it have begun
    left = room(history)
    if left <= 0 or is_searching(history):
        return ()
    works: dict[str, Work] = {}
    for wave in (_single_changes, _combinations, _around_the_best):
        for candidate in wave(history, history.base):
            work = history.admit(candidate, Kind.PROBE, "collectives", base=history.base)
            if work is not None and not _asks_more(history, candidate, works.values()):
                works.setdefault(work.identity, work)
        if works:
            break
    return tuple(works.values())[: min(BATCH, left)]


def is_searching(history: History) -> bool:
    """Return whether probes are in flight: the next batch depends on what they find."""
    return bool(tallies.open_trials(history)[1])


def _asks_more(history: History, candidate: Assignment, batch: Iterable[Work]) -> bool:
    """Return whether the batch holds the same with less of an ordered parameter: if that fails, this need not run."""
    base = history.base or candidate
    for name in history.space.probe_parameters:
        for other in batch if history.space.parameters[name].monotone else ():
            values = (base[name], other.requested[name], candidate[name])
            if changed_parameters(other.requested, candidate) != (name,) or any(isinstance(v, str) for v in values):
                continue  # a word stands outside the order
            if float(values[0]) < float(values[1]) < float(values[2]):
                return True
    return False


def room(history: History) -> int:
    """Return how many probes may still run: together they take a bounded share of the node's time.

    None where the last ones all went without an answer: each is asked a few times, and there may be a hundred of them.
    """
    last = list(itertools.islice((probe for probe in reversed(history.probes) if probe.is_closed), MOST_LOST))
    is_silent = len(last) == MOST_LOST and all(probe.is_our_fault for probe in last)
    return 0 if is_silent else prices.room(history, Rung.PROBE)


def _single_changes(history: History, base: Assignment) -> Iterator[Assignment]:
    """The base, then every value on its own."""
    yield base
    yield from history.space.single_changes(base, history.space.probe_parameters)


def _combinations(history: History, base: Assignment) -> Iterator[Assignment]:
    """All changes that helped together, then pairs of them, then each under the other leading values."""
    ranked = _ranked(history)
    if not ranked:
        return
    helped = _helpful_changes(history, base)
    everything: Assignment = dict(base)
    for name, value in reversed(helped):  # the most helpful value of a parameter wins
        everything[name] = value
    yield everything
    for first, second in itertools.combinations(helped, 2):
        yield {**base, first[0]: first[1], second[0]: second[1]}
    best = ranked[0].work.resolved
    for name in history.space.probe_parameters:
        if history.space.parameters[name].effect_beyond_collectives:
            continue
        for value in history.space.parameters[name].domain:
            yield {**best, name: value}


def _around_the_best(history: History, _base: Assignment) -> Iterator[Assignment]:
    """Every single change of the best so far: the search ends where none of them helps."""
    ranked = _ranked(history)
    if ranked:
        yield from history.space.single_changes(ranked[0].work.resolved, history.space.probe_parameters)


def _helpful_changes(history: History, base: Assignment) -> list[tuple[str, Scalar]]:
    """Return the single changes that cut the communication time, most helpful first."""
    at_base = next((p for p in history.probes if p.is_measured and p.work.resolved == base), None)
    limit = _pass_us(at_base) * HELPED if at_base is not None else float("inf")
    helped = []
    for probe in _ranked(history):
        changed = [name for name in history.space.parameters if probe.work.resolved[name] != base[name]]
        if len(changed) == 1 and _pass_us(probe) <= limit:
            helped.append((changed[0], probe.work.resolved[changed[0]]))
    return helped


def _ranked(history: History) -> list[Trial]:
    """Return the probes that worked, least communication time first."""
    return sorted((probe for probe in history.probes if probe.is_measured), key=_pass_us)


def _pass_us(probe: Trial) -> float:
    return probe.outcome.value if probe.outcome and probe.outcome.value is not None else float("inf")
