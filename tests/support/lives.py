"""Studies one after the other in the same storage: a space with near variants, and how a map is handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.deadends.charter import chart
from agent.deadends.dead_end import DeadEnd
from agent.deadends.inheritance import Ancestor, inherit
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from agent.store.trial import Kind, Trial
from runners import Rung
from search_spaces import Assignment, Facts, SearchSpace
from tests.support.planted import FACTS, Planted, parameter, small_space
from tests.support.strategies import numbered

PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
Row = tuple[Assignment, Rung, Outcome]


def failed(reason: Reason, *blames: str) -> Outcome:
    """Return a failure with these blames."""
    failure = Planted((), reason).failure.model_copy(update={"blames": blames})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def space_with_variants() -> SearchSpace:
    """Return the small space with a locked value of `backend`: `d` may stand in the place of `b`."""
    space = small_space()
    near = [{"value": "b", "instead": {"backend": "d"}, "why": "the same, built differently"}]
    backend = parameter(("a", "b", "c", "d"), "a", seen_by_probe=True, near=near, locked=("d",))
    fallbacks = ({"graph": 1}, {"graph": 0})
    return space.model_copy(update={"parameters": {**space.parameters, "backend": backend}, "fallbacks": fallbacks})


def two_failures(space: SearchSpace, reason: Reason, rung: Rung = Rung.FULL) -> list[Row]:
    """Return what confirms that `backend = b` is dead: a pass without it, and two failures beside other values."""
    default = space.default_on(FACTS)
    other = {"graph": 0, "draft": 1, "expert": True}
    rows: list[Row] = [(default, Rung.FULL, PASSED), ({**default, **other}, Rung.FULL, PASSED)]
    blamed = failed(reason, "backend")
    return [*rows, ({**default, "backend": "b"}, rung, blamed), ({**default, **other, "backend": "b"}, rung, blamed)]


def split(trials: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Return launches and probes."""
    probes = [trial for trial in trials if trial.work.kind is Kind.PROBE]
    return [trial for trial in trials if trial.work.kind is not Kind.PROBE], probes


def dead_ends_of(rows: Sequence[Row], space: SearchSpace, facts: Facts = FACTS) -> tuple[DeadEnd, ...]:
    """Return the map of these trials."""
    return chart(*split(numbered(rows)), space, facts).dead_ends


def handed_on(
    rows: Sequence[Row], space: SearchSpace, facts: Mapping[str, object], to: SearchSpace | None = None
) -> tuple[DeadEnd, ...]:
    """Return what a study on a node with these facts inherits from one that saw `rows` on the usual node."""
    return inherit([Ancestor("old", space, FACTS, dead_ends_of(rows, space))], to or space, facts)
