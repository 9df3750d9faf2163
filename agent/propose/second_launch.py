"""Step 3: the second launch that a failure's policy asks for, since what fails once may be flaky."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from agent.deadends.dead_end import DeadEndState
from agent.deadends.observation import trial_label
from agent.deadends.signature import signature_of
from agent.deadends.suspicion import Suspicion
from agent.propose import prices, sums, tallies
from agent.propose.closed import of_closed
from agent.propose.history import ATTEMPTS, History
from agent.propose.points import points_of
from agent.reasons import TWICE, Policy, Reason
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Condition, matches_all

BY_CHANCE = frozenset({Policy.RETRY_ONCE, Policy.RECORD_ONLY})
"""Of those that ask for a second launch, what may have died of something outside of the engine, which may be over."""
RESUMED = "is its cause gone?"
"""Stage of what is launched again since somebody resumed a study that had given up."""
LARGEST_SHARE = 0.2
"""Of the budget: a node on which everything fails must not spend itself on second launches."""


def of_starting_points(history: History) -> Work | None:
    """Return the second launch of a default or baseline that failed by something that may not repeat, or None."""
    starts = tallies.starting_points(history)
    return _first(history, (trial for trial in starts if _policy(trial) is Policy.RETRY_ONCE))


def of_probes(history: History) -> Work | None:
    """Return the second probe of what failed by something that may not repeat, or None: probes cost little."""
    return _first(history, tallies.twice(history, "probes"))


def of_checks(history: History) -> Work | None:
    """Return the second question at a cheap rung that its failure's policy asks for, or None."""
    failed = tallies.twice(history, "checks")
    checks = (each for each in failed if each.work.rung is Rung.RESOLVE or _policy(each) is Policy.RETRY_ONCE)
    return _first(history, (each for each in checks if prices.room(history, each.work.rung) > 0))


def open_failures(history: History) -> dict[str, Trial]:
    """Return the launches that failed once by something that may not repeat, by the key of their assignment."""
    return history.memo.derived("open failures", (history,), lambda: _open_failures(history))


def _open_failures(history: History) -> dict[str, Trial]:
    if sums.num_confirmations(history) >= LARGEST_SHARE * history.budget:
        return {}
    found = of_closed(history, "may repeat", lambda: _all_open(history))
    return {trial.work.key: trial for trial, work in found if _is_unused(history, work)}


def _all_open(history: History) -> list[tuple[Trial, Work]]:
    """Return the launches that failed by something that may not repeat, each with its second launch."""
    known: dict[str, tuple[Trial, Work | None]] = history.memo.derived("may repeat as long as", _closing(history), dict)
    found = []
    for trial in _unsettled(history):
        kept = known.get(label := trial_label(trial))
        if kept is None or kept[0] is not trial:
            kept = known[label] = trial, _again(trial) if _is_open(history, trial) else None
        if kept[1] is not None:
            found.append((trial, kept[1]))
    return found


def _closing(history: History) -> list[object]:
    """Return all that decides whether a failure asks for a second launch, beside the failure itself."""
    repeated = (
        f"{why.failed.failure.reason} {why.failed.signature} {' '.join(map(str, why.best.conditions))}"
        for why in history.atlas.suspicions
        if why.is_repeated
    )
    confirmed = (str(found) for found in history.atlas.confirmed)
    return [_settled(history), *confirmed, *sorted(_at_an_edge(history)), *repeated]


def _unsettled(history: History) -> list[Trial]:
    """Return the failed launches that no more than a suspicion speaks of: of a long study, few."""
    return of_closed(history, "unsettled", lambda: _all_unsettled(history))


def _all_unsettled(history: History) -> list[Trial]:
    settled = _settled(history)
    return [trial for label, trial in sums.failed_once(history).items() if label not in settled]


def once_failed(history: History, point: Assignment) -> Work | None:
    """Return the second launch of a point that failed once, or None where it did not."""
    failures = open_failures(history)
    trial = failures.get(points_of(history).of(point).key) if failures else None
    return None if trial is None else _again(trial)


def since_resumed(history: History) -> Work | None:
    """Return a further launch of a starting point whose last failure may have had a cause outside of the engine.

    Only where another agent gave up, and this one was begun to go on: that speaks for the cause being gone. One that
    was merely interrupted on the way there gives up as an undisturbed one does.
    """
    mine = [trial for trial in history.launches if trial.lease == history.owner]
    if history.owner is None or any(trial.work.stage != RESUMED for trial in mine):
        return None
    last = {trial.work.key: trial for trial in history.launches}  # of each assignment, in the order of their first ones
    for trial in last.values():
        if trial.is_failed and _policy(trial) in BY_CHANCE and trial.lease != history.owner:
            work = _unused(history, trial)
            if history.interruptions[work.identity] < ATTEMPTS:
                return work
    return None


def _unused(history: History, trial: Trial) -> Work:
    """Return the first repeat of a launch that is not closed yet."""
    repeats = (trial.work.again(Kind.CONFIRM, each, RESUMED, trial.work.base) for each in itertools.count())
    return next(work for work in repeats if work.identity not in history.identities)


def propose(history: History) -> Work | None:
    """Return a launch that shows whether a failure repeats, or None."""
    trial = next(iter(open_failures(history).values()), None)
    return None if trial is None else _again(trial)


def _first(history: History, trials: Iterable[Trial]) -> Work | None:
    spent = sums.num_confirmations(history)
    for trial in trials:
        is_cheap = trial.work.rung is not Rung.FULL
        if trial.is_failed and (is_cheap or spent < LARGEST_SHARE * history.budget) and _may_run_again(history, trial):
            return _again(trial)
    return None


def _may_run_again(history: History, trial: Trial) -> bool:
    return _is_open(history, trial) and _is_unused(history, _again(trial))


def _is_unused(history: History, work: Work) -> bool:
    """Return whether a second launch was not made yet and is not being made."""
    known = (history.probed,) if work.rung is Rung.PROBE else (history.identities, history.checked)
    is_open = not any(work.identity in each for each in known) and not history.in_flight.holds(work)
    return is_open and history.interruptions[work.identity] < ATTEMPTS


def _policy(trial: Trial) -> Policy | None:
    return trial.outcome.failure.policy if trial.outcome and trial.outcome.failure else None


def _is_open(history: History, trial: Trial) -> bool:
    failure = trial.outcome.failure if trial.outcome else None
    if failure is None or failure.policy not in TWICE or trial.work.kind is Kind.CONFIRM or trial.work.repeat > 0:
        return False
    if (label := trial_label(trial)) in _settled(history) or label in _at_an_edge(history):
        return False
    if any(matches_all(found.conditions, trial.work.resolved) for found in history.atlas.confirmed):
        return False
    alike = _repeated(history).get((failure.reason, signature_of(failure)), ())
    return not any(matches_all(conditions, trial.work.resolved) for conditions in alike)


def _settled(history: History) -> frozenset[str]:
    """Return the labels of the trials that are evidence for more than a suspicion."""
    return history.memo.derived("settled", (history.atlas.dead_ends,), lambda: _all_settled(history))


def _all_settled(history: History) -> frozenset[str]:
    supports = [found.support for found in history.atlas.dead_ends if found.state is not DeadEndState.SUSPECTED]
    return history.memo.derived("settled by any", supports, lambda: frozenset().union(*supports))


def _at_an_edge(history: History) -> frozenset[str]:
    """Return the labels of the failures that a confirmed dead end explains if it begins early: `thresholds` asks."""
    edges = itertools.chain.from_iterable(map(history.atlas.edges_of, history.atlas.confirmed))
    return history.memo.derived(
        "at an edge", (history.atlas,), lambda: frozenset().union(*(edge.support for edge in edges))
    )


Alike = dict[tuple[Reason, str], list[tuple[Condition, ...]]]
"""Reason and look of failures → the likeliest cause of each group of them."""


def _repeated(history: History) -> Alike:
    """Return the failures that repeated often enough already."""
    return history.memo.derived("repeated", (history.atlas,), lambda: _all_repeated(history.atlas.suspicions))


def _all_repeated(suspicions: Iterable[Suspicion]) -> Alike:
    found: Alike = {}
    for each in suspicions:
        if each.is_repeated:
            look = (each.failed.failure.reason, each.failed.signature)
            found.setdefault(look, []).append(each.best.conditions)
    return found


def _again(trial: Trial) -> Work:
    """Repeat at the rung where it failed: that is the cheapest one known to show the failure."""
    if trial.work.rung is not Rung.FULL:
        return trial.work.again(Kind.PROBE, 1, f"does probe {trial.number} fail again?", trial.work.base)
    return trial.work.again(Kind.CONFIRM, 0, f"does trial {trial.number} fail again?", trial.work.base)
