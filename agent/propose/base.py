"""Step 1: a base that works. The engine's default; if it dies, safer and safer ones; then the baseline.

Where the safest one dies too, it may have been chance: the safest ones are launched again. After that the causes that
the failures leave open say which changes make a launch likely to work. A study that gave up so, and that somebody
resumes, launches once more what may have died of a cause outside of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.propose import second_launch
from agent.propose.history import History
from agent.propose.risk import Risk
from agent.store.trial import Kind, Work
from search_spaces import Assignment

AGAIN, BY_CAUSE = 2, 4
"""Launches after the safest setting died: of the safest ones again, and of what the causes left open speak for."""
CHANGES = 4
"""Parameters that are changed at once in one of the latter."""
HELPS = 0.02
"""Chance to work that a further change has to add."""
ELSE = "what may work instead"


def propose(history: History) -> Work | None:
    """Return the engine's default, the next safer setting or what may work instead; None when all of it failed."""
    ladder = history.starts
    for step, assignment in enumerate(ladder):
        stage = "the engine's default" if step == 0 else f"safer setting {step}"
        if (work := history.admit(assignment, Kind.DEFAULT, stage)) is not None:
            return work
    return _again(history) or _by_cause(history, ladder) or second_launch.since_resumed(history)


def _again(history: History) -> Work | None:
    """Return another launch of the safest setting that failed by something that may not repeat, or None."""
    if sum(trial.work.kind is Kind.CONFIRM for trial in history.launches) >= AGAIN:
        return None
    safest_first = (trial.work.resolved for trial in reversed(history.launches))
    return next(filter(None, (second_launch.once_failed(history, point) for point in safest_first)), None)


def _by_cause(history: History, ladder: Sequence[Assignment]) -> Work | None:
    """Return the launch that is likeliest to work for all that is known, reached by few changes from the safest."""
    if sum(trial.work.stage == ELSE for trial in history.launches) >= BY_CAUSE:
        return None
    risk, space, facts = Risk(history), history.space, history.facts
    for start in (ladder[-1], ladder[0]):
        point, found = space.normalise(start, facts), None
        for _ in range(CHANGES):
            chances = [(risk.chance_beside(each), each) for each in space.single_changes(point)]
            works = (
                (chance, history.admit(each, Kind.DEFAULT, ELSE)) for chance, each in sorted(chances, key=_likeliest)
            )
            chance, work = next(((chance, work) for chance, work in works if work is not None), (0.0, None))
            if work is None or (found is not None and chance < risk.chance_beside(found.resolved) + HELPS):
                break
            found, point = work, work.resolved
        if found is not None:
            return found
    return None


def _likeliest(pair: tuple[float, Assignment]) -> float:
    return -round(pair[0], 9)


def baseline(history: History) -> Work | None:
    """Return the baseline without speculation, once."""
    if history.base is None:
        return None
    return history.admit(history.without_speculation(history.base), Kind.BASELINE, "baseline without speculation")


def why_nothing_works(history: History) -> str:
    """Return the reasons for which the default and every safer setting failed, in words."""
    reasons = [trial.outcome.failure for trial in history.trials if trial.outcome and trial.outcome.failure]
    if not reasons:
        return "no assignment of the space may be launched: every one breaks a relation"
    lines = dict.fromkeys(f"{failure.reason.value} ({failure.cure})" for failure in reasons)
    why = "neither the engine's default nor any safer setting works here: " + "; ".join(lines)
    may_be_gone = dict.fromkeys(
        failure.reason.value for failure in reasons if failure.policy in second_launch.BY_CHANCE
    )
    again = f". Once what caused {', '.join(may_be_gone)} is gone, `agent resume` launches that again"
    return why + again if may_be_gone else why
