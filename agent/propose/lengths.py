"""Draft lengths around the leader, none included, so that the study ends with a schedule and not with one length.

A small part of the share for repeats: what the search measured anyway is not launched again, and one launch measures
all concurrency levels.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.propose import baselines, sums
from agent.propose.closed import of_measured
from agent.propose.history import History
from agent.propose.standing import Standing
from agent.schedule import family
from agent.store.trial import Kind, Work
from search_spaces import Assignment

STAGE = "draft lengths around the best"
PART = 4
"""One launch in so many of those kept for repeats."""


def propose(history: History, standing: Standing) -> Work | None:
    """Return the launch of a neighbouring draft length, or None where the neighbours are known or the part is spent."""
    share = int(history.settings.contender_share * history.budget)
    spent, leader = sums.num_launches_in(history, STAGE), standing.first
    if leader is None or spent >= share // PART or not baselines.repeats(history, leader):
        return None
    for candidate in of_measured(history, "lengths", lambda: list(_neighbours(history, leader)), (leader,)):
        if (work := history.admit(candidate, Kind.SEARCH, STAGE, base=history.measured[leader])) is not None:
            return work
    return None


def _neighbours(history: History, key: str) -> Iterator[Assignment]:
    """Yield what is not measured yet: without speculation first, then the next longer and the next shorter draft."""
    space, facts, leader = history.space, history.facts, history.measured[key]
    by_value = sorted(history.measured, key=history.mean, reverse=True)
    known = family(space, facts, leader, [history.measured[key] for key in by_value])
    if 0 not in known:
        yield history.without_speculation(leader)
    speculating = [known[drafted] for drafted in known if drafted]
    start = leader if space.num_drafted(leader, facts) else next(iter(speculating), None)
    if start is None:
        return
    name = next(each for each in space.draft_length_names if space.parameters[each].is_active(start, facts))
    numbers = sorted(value for value in space.parameters[name].domain if isinstance(value, int) and value > 0)
    place = numbers.index(int(start[name]))
    for value in (*numbers[place + 1 : place + 2], *numbers[max(0, place - 1) : place]):
        point = space.normalise({**start, name: value}, facts)
        if space.num_drafted(point, facts) not in known:
            yield point
