"""Experiments on the map: which launch or probe tells the possible causes of a failure apart.

A failure leaves several conjunctions that may have caused it (`agent.deadends.explain`), each with its share. An
experiment takes some of the failure's values over to an assignment that works, and is worth what its answer is
expected to tell: most where half of the shares say that it fails. It runs at the cheapest rung that shows the failure.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from agent.deadends.observation import trial_label
from agent.deadends.signature import signature_of
from agent.deadends.suspicion import Suspicion
from agent.propose import audits, collectives, experiment_points, thresholds
from agent.propose.expectation import Expectation, likely_causes
from agent.propose.history import History
from agent.propose.second_launch import LARGEST_SHARE
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment

MOST_EACH = 12
"""Experiments for each failure: what is not clear by then stays suspected."""
MOST_ALIKE = {False: 2 * MOST_EACH, True: MOST_EACH}
"""Experiments for all failures that look alike, and again for each dead end of theirs; fewer where it may be chance."""
LEAST_AT_PROBE = 0.3
"""Share of the causes that a probe can see from which it is asked first."""
LEAST_WORTH = 0.1
"""Expected information, in bits, below which an experiment is not run."""


def at_probe_rung(history: History) -> tuple[Work, ...]:
    """Return the probes that the map asks for, one for each unexplained failure, or nothing."""
    if collectives.is_searching(history) or collectives.room(history) <= 0:
        return ()
    wanted = itertools.chain.from_iterable(step(history, Rung.PROBE) for step in STEPS)
    works = {work.identity: work for work in wanted}
    return tuple(works.values())[: min(collectives.BATCH, collectives.room(history))]


def at_full_rung(history: History) -> Work | None:
    """Return the launch that the map asks for, or None when nothing is unclear or the share for it is spent."""
    spent = sum(trial.work.kind is Kind.CONFIRM for trial in history.launches)
    if spent >= LARGEST_SHARE * history.budget:
        return None
    return next(itertools.chain.from_iterable(step(history, Rung.FULL) for step in STEPS), None)


def propose(history: History, rung: Rung) -> Iterator[Work]:
    """Yield the best experiment at a rung for each failure that is not explained yet, those first that had fewest."""
    of_failure, of_signature = _spent(history)
    known = Counter(_signatures_of_confirmed(history))
    expectation = Expectation(history)
    for suspicion in sorted(history.atlas.suspicions, key=lambda each: of_failure[_stage(each)]):
        signature = suspicion.failed.signature
        is_spent = of_signature[signature] >= MOST_ALIKE[suspicion.is_likely_chance] * (1 + known[signature])
        if is_spent or of_failure[_stage(suspicion)] >= MOST_EACH:
            continue
        at_probe = _at_a_probe(history, suspicion)
        if at_probe is not None and rung is Rung.PROBE:
            yield at_probe
        elif at_probe is None and rung is suspicion.failed.seen.rung:
            work = _best(history, suspicion, rung, expectation)
            if work is not None:
                yield work


def _spent(history: History) -> tuple[Counter[str], Counter[str]]:
    """Return how many experiments were run on each failure, and on all that look like it."""
    trials = [trial for trial in (*history.launches, *history.probes) if trial.counts or not trial.is_closed]
    signatures = {stage_of(trial_label(trial)): signature for trial, signature in _failures(trials)}
    stages = [trial.work.stage for trial in trials if trial.work.about and trial.work.stage in signatures]
    return Counter(stages), Counter(signatures[stage] for stage in stages)


def _failures(trials: Iterable[Trial]) -> Iterator[tuple[Trial, str]]:
    for trial in trials:
        if trial.outcome is not None and trial.outcome.failure is not None:
            yield trial, signature_of(trial.outcome.failure)


def _signatures_of_confirmed(history: History) -> list[str]:
    """Return what the oldest failure of each confirmed dead end of this study looks like."""
    looks = {trial_label(trial): look for trial, look in _failures((*history.trials, *history.probes))}
    return [looks[found.support[0]] for found in history.atlas.confirmed if found.support and found.support[0] in looks]


def _at_a_probe(history: History, suspicion: Suspicion) -> Work | None:
    """Return the probe that tells whether a launch's failure shows there too, or None: known, or not to be expected."""
    visible, failed = history.space.probe_parameters, suspicion.failed.seen
    if failed.rung in (Rung.RESOLVE, Rung.PROBE) or Rung.PROBE not in history.rungs or not visible:
        return None
    likely = (
        cause for cause in likely_causes(suspicion) if all(each.parameter in visible for each in cause.conditions)
    )
    if sum(cause.share for cause in likely) < LEAST_AT_PROBE:
        return None
    seen = [repr(failed.assignment[name]) for name in visible]
    if any([repr(probe.work.resolved[name]) for name in visible] == seen for probe in history.probes if probe.counts):
        return None
    stage = f"does a probe show what made {failed.label} fail?"
    about = suspicion.failed.failure.reason.value
    return history.admit(failed.assignment, Kind.PROBE, stage, base=history.base, about=about)


def _best(history: History, suspicion: Suspicion, rung: Rung, expectation: Expectation) -> Work | None:
    about, kind = suspicion.failed.failure.reason.value, Kind.PROBE if rung is Rung.PROBE else Kind.CONFIRM
    ranked: dict[str, tuple[float, int, Assignment]] = {}
    vain = _num_in_vain(history, suspicion)
    for order, candidate in enumerate(experiment_points.candidates(history, suspicion, rung)):
        point = history.space.normalise(candidate, history.facts)
        key = str(point)
        if key not in ranked:
            ranked[key] = (-expectation.worth(suspicion, point, vain), order, point)
    for worth, _, point in sorted(ranked.values(), key=lambda row: row[:2]):
        if -worth < LEAST_WORTH:
            break
        work = history.admit(point, kind, _stage(suspicion), base=history.base, about=about)
        if work is not None and work.resolved == point:
            return work
    return None


def stage_of(label: str) -> str:
    """Return the stage of the experiments on a failure."""
    return f"what makes {label} fail?"


def _stage(suspicion: Suspicion) -> str:
    return stage_of(suspicion.failed.seen.label)


def _num_in_vain(history: History, suspicion: Suspicion) -> int:
    """Return how many experiments on a failure ended by another reason, and told nothing."""
    stage, reason = _stage(suspicion), suspicion.failed.failure.reason
    run = (trial.outcome for trial in (*history.launches, *history.probes) if trial.work.stage == stage)
    ended = (outcome.failure for outcome in run if outcome is not None)
    return sum(failure is not None and failure.reason is not reason for failure in ended)


STEPS = (propose, thresholds.propose, audits.propose, thresholds.propose_late)
"""What the map asks for, most urgent first: what causes a failure, where it begins, whether it holds as widely."""
