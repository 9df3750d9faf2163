"""Experiments on the map: which launch or probe tells the possible causes of a failure apart.

A failure leaves several conjunctions that may have caused it (`agent.deadends.explain`), each with its share. An
experiment takes some of the failure's values over to an assignment that works, and is worth what its answer is
expected to tell: most where half of the shares say that it fails. It runs at the cheapest rung that shows the failure.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping

from agent.deadends.explain import LEAST_SHARE, Explanation
from agent.deadends.learn import BELIEVED, REPEATS_BY_CHANCE, Suspicion
from agent.propose import audits, collectives, thresholds
from agent.propose.history import History
from agent.propose.risk import Risk
from agent.propose.second_launch import LARGEST_SHARE
from agent.reasons import Reason
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, Scalar, matches_all

CONTEXTS = 8
"""Working assignments that are tried as the other half of an experiment: those that differ most from the failure."""
MOST_EACH = 10
"""Experiments for each failure: what is not clear by then stays suspected."""
LEAST_AT_PROBE = 0.3
"""Share of the causes that a probe can see from which it is asked first."""
LAST_RESORT = 0.2
"""What an experiment is worth, as a share, that most likely fails for another reason: better than none."""
LEAST_WORTH = 0.1
"""Expected information, in bits, below which an experiment is not run."""


def at_probe_rung(history: History) -> tuple[Work, ...]:
    """Return the probes that the map asks for, one for each unexplained failure, or nothing."""
    if collectives.is_searching(history) or collectives.room(history) <= 0:
        return ()
    wanted = itertools.chain.from_iterable(step(history, Rung.PROBE) for step in _STEPS)
    works = {work.identity: work for work in wanted}
    return tuple(works.values())[: min(collectives.BATCH, collectives.room(history))]


def at_full_rung(history: History) -> Work | None:
    """Return the launch that the map asks for, or None when nothing is unclear or the share for it is spent."""
    spent = sum(trial.work.kind is Kind.CONFIRM for trial in history.launches)
    if spent >= LARGEST_SHARE * history.budget:
        return None
    return next(itertools.chain.from_iterable(step(history, Rung.FULL) for step in _STEPS), None)


def propose(history: History, rung: Rung) -> Iterator[Work]:
    """Yield the best experiment at a rung for each failure that is not explained yet."""
    run = [trial.work for trial in (*history.launches, *history.probes) if _is_spent(trial)]
    of_reason, of_failure = Counter(work.about for work in run), Counter(work.stage for work in run)
    for suspicion in history.atlas.suspicions:
        reason = suspicion.failed.failure.reason
        if (
            of_reason[reason] >= MOST_EACH * _num_dead_ends(history, reason)
            or of_failure[_stage(suspicion)] >= MOST_EACH
        ):
            continue
        at_probe = _at_a_probe(history, suspicion)
        if at_probe is not None and rung is Rung.PROBE:
            yield at_probe
        elif at_probe is None and rung is suspicion.failed.seen.rung:
            work = _best(history, suspicion, rung)
            if work is not None:
                yield work


def _is_spent(trial: Trial) -> bool:
    """An interrupted experiment says nothing and is run again."""
    return bool(trial.work.about) and (trial.counts or not trial.is_closed)


def _num_dead_ends(history: History, reason: Reason) -> int:
    """Return how many dead ends of a reason experiments were or may be spent on: the known ones, and a few more."""
    return 3 + sum(found.reason is reason for found in history.atlas.confirmed)


def _at_a_probe(history: History, suspicion: Suspicion) -> Work | None:
    """Return the probe that tells whether a launch's failure shows there too, or None: known, or not to be expected."""
    visible, failed = history.space.probe_parameters, suspicion.failed.seen
    if failed.rung in (Rung.RESOLVE, Rung.PROBE) or Rung.PROBE not in history.rungs or not visible:
        return None
    likely = (cause for cause in _causes(suspicion) if all(each.parameter in visible for each in cause.conditions))
    if sum(cause.share for cause in likely) < LEAST_AT_PROBE:
        return None
    seen = [repr(failed.assignment[name]) for name in visible]
    if any([repr(probe.work.resolved[name]) for name in visible] == seen for probe in history.probes if probe.counts):
        return None
    stage = f"does a probe show what made {failed.label} fail?"
    about = suspicion.failed.failure.reason.value
    return history.admit(failed.assignment, Kind.PROBE, stage, base=history.base, about=about)


def _best(history: History, suspicion: Suspicion, rung: Rung) -> Work | None:
    causes, risk = _causes(suspicion), Risk(history)
    if not causes:
        return None
    about, kind = suspicion.failed.failure.reason.value, Kind.PROBE if rung is Rung.PROBE else Kind.CONFIRM
    ranked: dict[str, tuple[float, int, Assignment]] = {}
    for order, candidate in enumerate(_candidates(history, suspicion, causes, rung)):
        point = history.space.normalise(candidate, history.facts)
        worth = _worth(suspicion, causes, point) * max(risk.chance_beside(point, suspicion), LAST_RESORT)
        if worth >= LEAST_WORTH:
            ranked.setdefault(str(point), (-worth, order, point))
    for _, _, point in sorted(ranked.values(), key=lambda row: row[:2]):
        work = history.admit(point, kind, _stage(suspicion), base=history.base, about=about)
        if work is not None and work.resolved == point:
            return work
    return None


def _stage(suspicion: Suspicion) -> str:
    return f"what makes {suspicion.failed.seen.label} fail?"


def _causes(suspicion: Suspicion) -> list[Explanation]:
    return [each for each in suspicion.explanations if each.share >= LEAST_SHARE / 4]


def _worth(suspicion: Suspicion, causes: list[Explanation], point: Mapping[str, Scalar]) -> float:
    """Return the bits that the answer is expected to tell about the cause, or about whether it was chance."""
    fails = sum(cause.share for cause in causes if matches_all(cause.conditions, point))
    if suspicion.best.share >= BELIEVED:  # clear what it is: left to see that it repeats
        return fails if fails >= BELIEVED else 0.0
    return _entropy(fails if suspicion.is_repeated else fails * (1 - REPEATS_BY_CHANCE / 4))


def _candidates(history: History, suspicion: Suspicion, causes: list[Explanation], rung: Rung) -> Iterator[Assignment]:
    failed = suspicion.failed.seen.assignment
    for context in _contexts(history, suspicion, rung):
        names: set[str] = set()
        for cause in causes:
            names |= {condition.parameter for condition in cause.conditions}
            yield {**context, **{name: failed[name] for name in names}}
            yield from _other_thresholds(history, cause, {**context, **_values(cause, failed)})
        yield from _without_company(history, causes, {**context, **_values(causes[0], failed)})


def _values(cause: Explanation, failed: Assignment) -> Assignment:
    return {condition.parameter: failed[condition.parameter] for condition in cause.conditions}


def _other_thresholds(history: History, cause: Explanation, point: Assignment) -> Iterator[Assignment]:
    """The same with more or less of an ordered parameter: where does it begin, and does it go on to the end?"""
    for condition in cause.conditions:
        parameter = history.space.parameters[condition.parameter]
        if parameter.monotone:
            for value in parameter.domain:
                yield {**point, condition.parameter: value}


def _without_company(history: History, causes: list[Explanation], point: Assignment) -> Iterator[Assignment]:
    """The likeliest cause with another value of a parameter that was the same in all failures so far."""
    own = {condition.parameter for condition in causes[0].conditions}
    for name in dict.fromkeys(each.parameter for cause in causes for each in cause.conditions):
        for value in history.space.parameters[name].domain if name not in own else ():
            yield {**point, name: value}


def _contexts(history: History, suspicion: Suspicion, rung: Rung) -> list[Assignment]:
    """Return working assignments of this rung or above, those first that share least with what failed."""
    failed = suspicion.failed.seen
    visible = history.space.probe_parameters if rung is Rung.PROBE else tuple(history.space.parameters)
    points = history.working_at(rung)
    suspects = {each.parameter for cause in _causes(suspicion) for each in cause.conditions}
    weight = {name: 3 if name in suspects else 1 for name in visible}
    shared = {
        key: sum(weight[name] for name in visible if point[name] == failed.assignment[name])
        for key, point in points.items()
    }
    return [points[key] for key in sorted(points, key=lambda key: (shared[key], key))[:CONTEXTS]]


def _entropy(probability: float) -> float:
    if not 0.0 < probability < 1.0:
        return 0.0
    other = 1.0 - probability
    return -probability * math.log2(probability) - other * math.log2(other)


_STEPS = (propose, thresholds.propose, audits.propose)
"""What the map asks for, most urgent first: what causes a failure, where it begins, whether it holds as widely."""
