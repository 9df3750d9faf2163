"""Step 5: one change at a time from the best known, so that an effect is measured alone and a failure has a base."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agent.propose import collectives
from agent.propose.history import History
from agent.store.trial import Kind, Work
from search_spaces import Assignment, Scalar


def propose(history: History) -> Work | None:
    """Return the next single change worth a launch, or None when they are done or their share is spent."""
    spent = sum(trial.work.kind is Kind.SCREEN for trial in history.launches)
    if history.incumbent is None or spent >= int(history.settings.screen_share * history.budget):
        return None
    for candidate in collectives.promoted(history):
        if (work := history.admit(candidate, Kind.SCREEN, "best collectives", base=history.base)) is not None:
            return work
    for candidate in _changes(history, history.incumbent):
        if (work := history.admit(candidate, Kind.SCREEN, "one change", base=history.incumbent)) is not None:
            return work
    return None


def _changes(history: History, incumbent: Assignment) -> Iterator[Assignment]:
    """Yield single changes in order of expected effect, of each parameter the values that differ most first."""
    for name, parameter in history.space.parameters.items():
        if parameter.seen_by_probe and not parameter.effect_beyond_collectives and history.probes:
            continue  # settled at the probe rung
        for value in _spread(parameter.domain, incumbent[name]):
            yield {**incumbent, name: value}


@lru_cache(maxsize=1024)
def _spread(domain: tuple[Scalar, ...], here: Scalar) -> tuple[Scalar, ...]:
    """Order a parameter's other values so that each next one is as far as possible from those before it."""
    taken = [domain.index(here)] if here in domain else [0]
    rest = [index for index in range(len(domain)) if index not in taken]
    order: list[Scalar] = []
    while rest:
        farthest = max(rest, key=lambda index: min(abs(index - other) for other in taken))
        rest.remove(farthest)
        taken.append(farthest)
        order.append(domain[farthest])
    return tuple(order)
