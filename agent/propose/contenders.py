"""Step 7: repeats of the baseline and the best few, interleaved, since a single run crowns the luckiest."""

from __future__ import annotations

from collections import Counter

from agent.propose.history import ATTEMPTS, History
from agent.store.trial import Kind, Work

BEST = 3


def reserved(history: History) -> int:
    """Return how many launches at the end of the budget are kept for repeats."""
    return int(history.settings.contender_share * history.budget)


def propose(history: History) -> Work | None:
    """Return one more launch of the contender with the fewest, or None when nothing was measured at all.

    Among equals the best goes first and the baseline second, so that even two repeats tell something; further rounds
    interleave by themselves.
    """
    best, *others = [*history.ranking[:BEST], None]
    keys = dict.fromkeys(filter(None, [best, history.baseline_key, *others]))
    contenders = [
        work for key in keys if history.interruptions[(work := _next_repeat(history, key)).identity] < ATTEMPTS
    ]
    if not contenders:
        return None
    launches = Counter(trial.work.key for trial in history.launches)
    return min(contenders, key=lambda work: launches[work.key])


def _next_repeat(history: History, key: str) -> Work:
    launched = [trial for trial in history.launches if trial.work.key == key]
    repeats = sum(trial.work.kind is Kind.REPEAT for trial in launched)
    first = next(trial for trial in launched if trial.is_measured)
    return first.work.again(Kind.REPEAT, repeats, "contender")
