"""Step 7: repeats of the baseline and the best few, interleaved, since a single run crowns the luckiest.

A repeat is a fresh launch, since the larger part of the noise lies between launches. Who leads is decided by what every
launch says together (`standing`); the repeats go to the leader, to whoever may still be better by something that
matters, and to the baseline until the verdict is clear. Whoever has the fewest launches comes next, and among equals
the order is drawn from the study's seed, so that no time of day meets one contender only.
"""

from __future__ import annotations

import heapq

from agent.propose import baselines, tallies
from agent.propose.history import ATTEMPTS, History
from agent.propose.standing import Standing
from agent.store.trial import Work
from agent.verdict import EARLY_LEVEL, Verdict

BEST = 3
"""Contenders besides the baseline."""
MATTERS = 0.01
"""Expected gain of one contender over the leader, as a share of the objective, below which it need not be looked at."""
LEAST_REPEATS = 2
"""Repeats of the leader in any case: one alone says nothing of the spread."""


def reserved(history: History) -> int:
    """Return how many launches at the end of the budget are kept for repeats; early ones of the baseline are some."""
    share = int(history.settings.contender_share * history.budget)
    return max(0, share - len(baselines.repeats(history, history.baseline_key)))


def propose(history: History, standing: Standing) -> Work | None:
    """Return one more launch of a contender that is not told apart yet, or None where nothing is open."""
    leader = standing.first
    if leader is None:
        return None
    missing = LEAST_REPEATS - len(standing.repeats(leader))
    if missing >= history.budget - history.spent:  # the last launches are the leader's
        return _fewest(history, [leader])
    return _fewest(history, _wanted(history, standing, leader))


def awaits_a_repeat(history: History, standing: Standing) -> bool:
    """Return whether a contender is to be repeated and runs at this moment: its share is not spent on others."""
    leader = standing.first
    wanted = [] if leader is None else _wanted(history, standing, leader)
    return any(history.in_flight.holds(baselines.next_repeat(history, key, "contender")) for key in wanted)


def any_repeat(history: History, standing: Standing) -> Work | None:
    """Return one more launch of the contender with the fewest, where nothing else is left to do."""
    best = heapq.nsmallest(BEST, standing.reliable, key=lambda key: (-standing.worth(key), key))
    return _fewest(history, [*best, *([history.baseline_key] if history.baseline_key else [])])


def _wanted(history: History, standing: Standing, leader: str) -> list[str]:
    baseline = history.baseline_key
    others = [key for key in standing.hopeful if key not in (leader, baseline)]
    gains = {key: standing.expected_gain(key, leader) for key in others}
    rivals = [key for key in sorted(gains, key=lambda key: (-gains[key], key))[: BEST - 1] if gains[key] > MATTERS]
    wanted = [leader, *rivals] if rivals else []
    if len(standing.repeats(leader)) < LEAST_REPEATS:
        wanted.append(leader)
    challenger = standing.leader(others) if leader == baseline else leader
    if baseline is not None and challenger is not None and not _is_clear(standing, challenger):
        wanted += [challenger, baseline]
    return wanted


def _is_clear(standing: Standing, key: str) -> bool:
    found = standing.comparisons(EARLY_LEVEL).get(key)
    return found is not None and found.verdict is not Verdict.NOT_SEPARABLE


def _fewest(history: History, keys: list[str]) -> Work | None:
    works = [baselines.next_repeat(history, key, "contender") for key in dict.fromkeys(keys)]
    may_run = (work for work in works if not history.in_flight.holds(work))
    open_ = [work for work in may_run if history.interruptions[work.identity] < ATTEMPTS]
    draw = history.random("contenders")
    order = {work.key: (_launches(history, work.key), draw.random()) for work in open_}
    return min(open_, key=lambda work: order[work.key], default=None)


def _launches(history: History, key: str) -> int:
    return sum(trial.counts or not trial.is_closed for trial in tallies.with_key(history, key))
