"""Step 7: repeats of the baseline and the best few, interleaved, since a single run crowns the luckiest."""

from __future__ import annotations

from collections import Counter

from agent.propose.history import History
from agent.store.trial import Kind, Trial, Work

BEST = 3


def reserved(history: History) -> int:
    """Return how many launches at the end of the budget are kept for repeats."""
    return int(history.settings.contender_share * history.budget)


def propose(history: History) -> Work | None:
    """Return one more launch of the contender with the fewest, or None when nothing was measured at all."""
    contenders = list(dict.fromkeys([*filter(None, [history.baseline_key]), *history.ranking[:BEST]]))
    if not contenders:
        return None
    repeats = Counter(trial.work.key for trial in history.trials if trial.work.kind is Kind.REPEAT and _occupies(trial))
    launches = Counter(trial.work.key for trial in history.trials if _occupies(trial))
    history.random("contenders").shuffle(contenders)
    key = min(contenders, key=lambda contender: launches[contender])
    first = next(trial for trial in history.trials if trial.work.key == key and trial.is_measured)
    update = {"kind": Kind.REPEAT, "repeat": repeats[key], "stage": "contender", "base": None}
    return first.work.model_copy(update=update)


def _occupies(trial: Trial) -> bool:
    return trial.counts or not trial.is_closed
