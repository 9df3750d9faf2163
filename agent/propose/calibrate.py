"""Repeats of the baseline early on, where knowing how much launches differ pays for itself.

The last part of the budget repeats the baseline anyway. Where serving is the larger part of a launch, its repeats are
worth more at the beginning: from then on a launch that is clearly slower ends early (`agent.stopping`).
"""

from __future__ import annotations

from agent.propose import sums, tallies
from agent.propose.history import ATTEMPTS, History
from agent.stopping import LEAST_FREEDOM, can_stop, study_spread
from agent.store.trial import Kind, Trial, Work
from runners import Phase

LEAST_SHARE = 0.5
"""Share of a launch that serving has to take."""
LEAST_LEFT = 20
"""Launches that have to be left: fewer do not win back what the repeats cost."""


def propose(history: History) -> Work | None:
    """Return one more launch of the baseline, or None where the spread is known or would not pay."""
    starts = tallies.starting_points(history)
    baseline = next((trial for trial in starts if trial.is_measured and trial.work.kind is Kind.BASELINE), None)
    if baseline is None or not can_stop(history) or not _is_worth_it(history, baseline):
        return None
    is_known = sums.num_of_kind(history, Kind.REPEAT) >= LEAST_FREEDOM
    if is_known or study_spread(history).freedom >= LEAST_FREEDOM:
        return None
    ours = len(sums.repeats(history, baseline.work.key))
    work = baseline.work.again(Kind.REPEAT, ours, "how much launches differ")
    may_run = history.interruptions[work.identity] < ATTEMPTS and not history.in_flight.holds(work)
    return work if may_run else None


def _is_worth_it(history: History, baseline: Trial) -> bool:
    if history.budget - history.spent < LEAST_LEFT or baseline.record is None:
        return False
    return baseline.record.phase_s.get(Phase.SERVE, 0.0) >= LEAST_SHARE * baseline.record.wall_s > 0
