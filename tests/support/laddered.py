"""Studies of an instant engine that has every rung, and of which it is known what each rung shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.outcome import Outcome, OutcomeKind
from agent.settings import StudySettings
from agent.store.trial import Trial
from runners import Rung, RunRecord
from runners.contract import EngineSettings, Exit, Measurement, Phase
from search_spaces import Assignment, Scalar
from tests.support.planted import Planted, PlantedRunner, Truth
from tests.support.simulated_study import SimulatedStudy

SECONDS = {Rung.RESOLVE: 0.01, Rung.PROBE: 0.1, Rung.DUMMY: 0.2, Rung.FULL: 2.0}
ORDER = list(Rung)


class LadderedRunner(PlantedRunner):
    """A runner with all rungs, of which only `resolve` is asked."""

    rungs = tuple(Rung)


@dataclass(frozen=True)
class LadderedTruth(Truth):
    """A truth in which every planted failure shows from some rung on."""

    lowest: tuple[Rung, ...] = ()
    """For each planted failure, the cheapest rung that shows it; those that are not listed show at the top only."""
    imagined: tuple[tuple[Planted, Rung], ...] = ()
    """Failures that strike at one rung alone, and not above it."""

    def cause(self, assignment: Mapping[str, Scalar], rung: Rung) -> Planted | None:
        """Return why a trial at this rung fails, or None."""
        hits = [planted for planted, where in self.imagined if where is rung and self._holds(planted, assignment)]
        for index, planted in enumerate(self.planted):
            lowest = self.lowest[index] if index < len(self.lowest) else Rung.FULL
            # A probe runs without the engine: it shows what is said to begin there, and nothing else.
            is_shown = lowest is rung if rung is Rung.PROBE else ORDER.index(rung) >= ORDER.index(lowest)
            if is_shown and self._holds(planted, assignment):
                hits.append(planted)
        return hits[0] if hits else None

    def outcome(self, assignment: Assignment, rung: Rung) -> Outcome:
        """Return what comes of a trial; arguments are refused in the phase in which they are resolved."""
        found = super().outcome(assignment, rung)
        if found.failure is None or rung is not Rung.RESOLVE:
            return found
        return found.model_copy(update={"failure": found.failure.model_copy(update={"phase": Phase.RESOLVE})})

    def _holds(self, planted: Planted, assignment: Mapping[str, Scalar]) -> bool:
        return all(condition.matches(assignment) for condition in planted.conditions)


@dataclass
class LadderedStudy(SimulatedStudy):
    """A study of it."""

    runner: PlantedRunner = field(default_factory=LadderedRunner)
    start_rung: Rung = Rung.RESOLVE
    max_rung: Rung = Rung.FULL

    @property
    def settings(self) -> StudySettings:
        """A small study with these rungs."""
        engine = EngineSettings(engine="synthetic", num_ranks=2, device="cpu")
        rungs = {"start_rung": self.start_rung, "max_rung": self.max_rung}
        return StudySettings(name="study", engine=engine, space="small", seed=self.seed, **rungs)

    def answer(self, trial: Trial, before: int) -> tuple[Outcome, RunRecord]:
        """Return what comes of a trial at its rung; it takes as long as such a rung does."""
        rung = trial.work.rung
        outcome = self.truth.outcome(trial.work.resolved, rung)
        is_measured = outcome.kind is OutcomeKind.MEASURED
        measurement = Measurement(levels=()) if is_measured and rung is Rung.FULL else None
        passed = is_measured and rung in (Rung.RESOLVE, Rung.DUMMY)
        record = RunRecord(
            exit=Exit(code=0), phase=Phase.STOP, wall_s=SECONDS[rung], measurement=measurement, passed=passed
        )
        return outcome, record
