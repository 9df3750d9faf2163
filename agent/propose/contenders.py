"""Step 7: repeats of the baseline and the best few, interleaved, since a single run crowns the luckiest."""

from __future__ import annotations

import math

from agent.propose.history import ATTEMPTS, History
from agent.propose.improve import Improvement
from agent.store.trial import Kind, Work

BEST = 3
SEPARATED = 2.0
"""Standard errors between two means that are told apart."""
MOST_REPEATS = 2
"""Launches of each of two contenders after which a difference that still does not show is too small to matter."""


def reserved(history: History) -> int:
    """Return how many launches at the end of the budget are kept for repeats."""
    return int(history.settings.contender_share * history.budget)


def propose(history: History) -> Work | None:
    """Return one more launch of a contender that is not separated from the best yet, or None when all are.

    The best and the baseline get a second launch in any case; a third and more only where the noise asks for it.
    """
    if not history.ranking:
        return None
    best, *others = Improvement(history).expected_ranking()[:BEST]
    rivals = [key for key in (*others, history.baseline_key) if key is not None and key != best]
    unclear = [key for key in rivals if not _is_separated(history, best, key)]
    wanted = [key for key in (best, history.baseline_key) if key is not None and _launches(history, key) < 2]
    return _fewest(history, wanted or ([best, *unclear] if unclear else []))


def any_repeat(history: History) -> Work | None:
    """Return one more launch of the contender with the fewest, where nothing else is left to do."""
    return _fewest(history, [key for key in (*history.ranking[:BEST], history.baseline_key) if key is not None])


def _fewest(history: History, keys: list[str]) -> Work | None:
    works = [_next_repeat(history, key) for key in dict.fromkeys(keys)]
    open_ = [work for work in works if history.interruptions[work.identity] < ATTEMPTS]
    return min(open_, key=lambda work: _launches(history, work.key), default=None)


def _launches(history: History, key: str) -> int:
    return sum(trial.work.key == key for trial in history.launches)


def _is_separated(history: History, best: str, other: str) -> bool:
    """Return whether noise does not explain the difference, or so many launches do not show one that it is small."""
    numbers = [len(history.values[key]) for key in (best, other)]
    gap = math.log(history.mean(best) / history.mean(other))
    error = history.noise_sd * math.sqrt(sum(1 / number for number in numbers))
    return gap > SEPARATED * error or min(numbers) >= MOST_REPEATS


def _next_repeat(history: History, key: str) -> Work:
    launched = [trial for trial in history.launches if trial.work.key == key]
    repeats = sum(trial.work.kind is Kind.REPEAT for trial in launched)
    first = next(trial for trial in launched if trial.is_measured)
    return first.work.again(Kind.REPEAT, repeats, "contender")
