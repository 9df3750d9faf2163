"""From what was concluded about the failures of one reason to entries of the map."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.edges import Edge
from agent.deadends.evidence import RUNG_ORDER, Evidence, Failed
from agent.deadends.explain import LEAST_SHARE
from agent.deadends.suspicion import Suspicion
from agent.reasons import REASONS, Policy, Reason
from runners import Rung
from search_spaces import Comparison, Conjunction, Facts, assignment_key


class Entries:
    """Writes the entries of one reason; no two of them get the same id."""

    def __init__(self, reason: Reason, evidence: Evidence, facts: Facts) -> None:
        self._reason, self._evidence, self._facts = reason, evidence, facts
        self._ids: set[str] = set()

    def confirmed(self, numbers: tuple[int, ...], explained: int) -> DeadEnd:
        """Return the entry of a conjunction that is believed, with the bits of the failures that it explains."""
        seen = self._evidence.reasons[self._reason]
        bits = explained & seen.steady
        support = by_age(failed for failed in seen.failures if bits >> failed.index & 1)
        rung = min((failed.seen.rung for failed in support), key=RUNG_ORDER.__getitem__)
        suspects = tuple(condition.parameter for condition in self._conjunction(numbers))
        return self._dead_end(numbers, DeadEndState.CONFIRMED, support, suspects, rung)

    def suspected(self, first: Suspicion, group: Sequence[Failed]) -> DeadEnd:
        """Return the entry of the failures whose likeliest cause is the same, with what is suspected of one of them."""
        support = by_age(group)
        numbers = first.best.numbers
        return self._dead_end(numbers, DeadEndState.SUSPECTED, support, suspects_of(first), support[0].seen.rung)

    def edge(self, edge: Edge) -> DeadEnd:
        """Return the entry of a limit that may begin earlier: it blocks nothing but what failed at it."""
        seen = self._evidence.reasons[self._reason]
        support = by_age(failed for failed in seen.failures if edge.bits >> failed.index & 1)
        first = support[0].seen
        return self._dead_end(edge.numbers, DeadEndState.SUSPECTED, support, first.visible, first.rung)

    def flaky(self, failed: Failed) -> DeadEnd:
        """Return the entry of a launch that failed and passed."""
        lexicon = self._evidence.lexicon
        numbers = tuple(min(group, key=lexicon.width) for group in failed.conditions)
        passes = self._evidence.contradicting(numbers, failed.seen.rung)
        found = self._dead_end(numbers, DeadEndState.FLAKY, [failed], (), failed.seen.rung)
        return found.model_copy(update={"contradicting": tuple(seen.label for seen in passes)})

    def _conjunction(self, numbers: tuple[int, ...]) -> Conjunction:
        return tuple(map(self._evidence.lexicon.condition, numbers))

    def _dead_end(
        self,
        numbers: tuple[int, ...],
        state: DeadEndState,
        support: Sequence[Failed],
        suspects: tuple[str, ...],
        rung: Rung,
    ) -> DeadEnd:
        first, row = support[0], REASONS[self._reason]
        depends_on = first.failure.facts
        conditions = self._conjunction(numbers)
        return DeadEnd(
            id=self._identify(conditions, state, rung),
            conditions=conditions,
            reason=self._reason,
            policy=row.policy,
            state=state,
            rung=rung,
            suspects=suspects,
            observed=first.seen.assignment,
            scope={name: self._facts[name] for name in depends_on if self._facts.get(name) is not None},
            depends_on=depends_on,
            support=tuple(failed.seen.label for failed in support),
            does_not_matter=_varied(conditions, support),
            decisive=first.failure.decisive.text if first.failure.decisive else "",
            cure=first.failure.cure,
            seconds=sum(failed.seen.seconds for failed in support),
        )

    def _identify(self, conditions: Conjunction, state: DeadEndState, rung: Rung) -> str:
        """Return an id that stays the same while a threshold is still moving, and is nobody else's."""
        parts = [
            f"{condition.parameter}{condition.comparison}"
            + (str(condition.value) if condition.comparison is Comparison.EQUAL else "")
            for condition in conditions
        ]
        found = _digest([self._reason.value, *sorted(parts)])
        if found in self._ids:
            found = _digest([self._reason.value, state, rung, *map(str, conditions)])
        self._ids.add(found)
        return found


def by_age(failures: Iterable[Failed]) -> list[Failed]:
    """Return failures, oldest first."""
    return sorted(failures, key=attrgetter("seen.moment"))


def one_of_each_launch(failures: Iterable[Failed]) -> Iterator[Failed]:
    """Yield the oldest failure of each launch, by launch; without those at which no parameter was visible."""
    launches: dict[tuple[str, str], Failed] = {}
    for failed in by_age(failures):
        launches.setdefault((failed.seen.rung, assignment_key(failed.seen.assignment)), failed)
    yield from (launches[key] for key in sorted(launches) if launches[key].seen.visible)


def suspects_of(suspicion: Suspicion) -> tuple[str, ...]:
    """Return what may belong to the cause: what a message of a reason that is dead at once blames, or all else."""
    best = tuple(condition.parameter for condition in suspicion.best.conditions)
    if suspicion.failed.failure.policy is Policy.DEAD_AT_ONCE and set(best) == suspicion.failed.blames:
        return best
    least = LEAST_SHARE * sum(each.share for each in suspicion.explanations)  # the rest of one is chance
    named = {
        condition.parameter for each in suspicion.explanations if each.share >= least for condition in each.conditions
    }
    return tuple(name for name in suspicion.failed.seen.visible if name in named)


def _varied(conditions: Conjunction, support: Sequence[Failed]) -> tuple[str, ...]:
    """Return the parameters that differed among the failures: shown not to matter."""
    named = {condition.parameter for condition in conditions}
    first = support[0].seen
    return tuple(
        name
        for name in first.visible
        if name not in named
        and any(repr(each.seen.assignment[name]) != repr(first.assignment[name]) for each in support)
    )


def _digest(parts: Iterable[str]) -> str:
    return f"D{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:6]}"
