"""The rungs that a study asks for, against those that its engine has; and what each of them cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.progress import spoken
from agent.spec import StudySpec
from agent.store.trial import Trial
from runners import EngineSettings, Rung
from runners.registry import UnknownEngineError, make_runner
from runners.rungs import rungs_of

WORDS = {Rung.RESOLVE: "resolved", Rung.PROBE: "probes", Rung.DUMMY: "dummy launches", Rung.FULL: "launches"}


@dataclass(frozen=True, slots=True)
class RungCost:
    """What was run at one rung."""

    closed: int
    failed: int
    node_s: float
    """Node time, in seconds."""
    by_outcome_s: Mapping[str, float] = field(default_factory=dict)
    """The same by what came of it."""


def check_engine(spec: StudySpec) -> None:
    """Raise UsageError or SpecificationError where there is no engine of that name."""
    try:
        make_runner(spec.engine)
    except UnknownEngineError as error:
        raise spec.error(str(error), "engine") from error


def asked_rungs(spec: StudySpec, engine: EngineSettings) -> dict[str, Any]:
    """Return what a study asks of the rungs, as keys of its settings.

    Raises:
        UsageError, SpecificationError: its engine does not have them.
    """
    order, there = list(Rung), rungs_of(make_runner(engine.engine), engine)
    first, last = order.index(spec.start_rung), order.index(spec.max_rung)
    if first > last:
        raise spec.error(f"{spec.max_rung.value} comes before start_rung {spec.start_rung.value}", "max_rung")
    if spec.max_rung not in there:
        named = ", ".join(rung.value for rung in there)
        raise spec.error(f"{spec.engine} has no {spec.max_rung.value} rung here. It has: {named}", "max_rung")
    return {"probe_share": spec.probe_share, "start_rung": spec.start_rung, "max_rung": spec.max_rung}


def costs_of(trials: Sequence[Trial]) -> dict[Rung, RungCost]:
    """Return what each rung cost at which something ran, cheapest rung first."""
    found = {}
    for rung in Rung:
        mine = [trial for trial in trials if trial.work.rung is rung]
        if mine:
            spent: Counter[str] = Counter()
            for trial in mine:
                if trial.outcome is not None and trial.record is not None:
                    spent[trial.outcome.kind.value] += trial.record.wall_s  # type: ignore[assignment]
            found[rung] = RungCost(
                closed=sum(trial.counts for trial in mine),
                failed=sum(trial.is_failed for trial in mine),
                node_s=sum(trial.record.wall_s for trial in mine if trial.record),
                by_outcome_s=dict(spent),
            )
    return found


def cost_words(costs: dict[Rung, RungCost]) -> str:
    """Return the rungs below the top in words: `12 resolved (1 failed, 3 s), 30 probes (4 failed, 95 s)`."""
    parts = []
    for rung, cost in costs.items():
        if rung is not Rung.FULL:
            failed = f"{cost.failed} failed, " if cost.failed else ""
            parts.append(f"{cost.closed} {WORDS[rung]} ({failed}{spoken(cost.node_s)})")
    return ", ".join(parts)
