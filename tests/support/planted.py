"""Small spaces and planted truths: which assignments of them work, and how a failure of one looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.outcome import Failure, Outcome, OutcomeKind
from agent.reasons import REASONS, Reason
from runners import LogLine, Phase, Rung, RunRecord
from runners.contract import EngineSettings, Exit, Measurement, Resolution
from search_spaces import Assignment, Facts, Parameter, Scalar, SearchSpace
from search_spaces.condition import Conjunction, matches_all
from tests.support.synthetic_engine import SyntheticEngine, fraction

FACTS: Facts = {"device": "cpu", "engine_version": "synthetic", "nccl": "none"}


def parameter(values: tuple[Scalar, ...], default: Scalar, **more: object) -> Parameter:
    """Return a parameter with these values."""
    settings = {"meaning": "for a test", "source": "planted", "flag": "flag", **more}
    return Parameter.model_validate({**settings, "values": values, "default": default})


def small_space() -> SearchSpace:
    """Return four parameters, as different as parameters get: 4 x 4 x 5 x 2 assignments."""
    return SearchSpace(
        engine="synthetic",
        parameters={
            "backend": parameter(("a", "b", "c", "d"), "a", seen_by_probe=True),
            "draft": parameter((0, 1, 2, 3), 2),
            "graph": parameter((0, 1, 2, 4, 8), 4, monotone=True, seen_by_probe=True, effect_beyond_collectives=True),
            "expert": parameter((False, True), False),
        },
        baseline={"draft": 0},
        fallbacks=({"graph": 1}, {"graph": 0}, {"backend": "d"}),
    )


@dataclass(frozen=True)
class Planted:
    """A set of assignments that fail for one reason."""

    conditions: Conjunction
    reason: Reason
    has_blames: bool = True
    """Whether the evidence names the parameters of the conditions."""
    at_probe: bool = True
    """Whether a probe shows it too, where it can see the parameters."""

    @property
    def failure(self) -> Failure:
        """The failure as the classifier would give it."""
        row = REASONS[self.reason]
        return Failure(
            reason=self.reason,
            rule="T001",
            confidence=1.0,
            phase=Phase.WARMUP,
            decisive=LogLine(number=7, text=f"planted {self.reason.value}"),
            blames=tuple(condition.parameter for condition in self.conditions) if self.has_blames else (),
            policy=row.policy,
            cure="Plant nothing.",
        )


@dataclass(frozen=True)
class Truth:
    """What launches really do: an instant engine of which everything is known."""

    space: SearchSpace
    planted: tuple[Planted, ...] = ()

    def works(self, assignment: Mapping[str, Scalar]) -> bool:
        """Return whether a full launch of the assignment works."""
        return self.cause(assignment, Rung.FULL) is None

    def cause(self, assignment: Mapping[str, Scalar], rung: Rung) -> Planted | None:
        """Return why a launch at this rung fails, or None."""
        seen = self.space.probe_parameters if rung is Rung.PROBE else tuple(self.space.parameters)
        for planted in self.planted:
            is_shown = rung is not Rung.PROBE or (
                planted.at_probe and all(condition.parameter in seen for condition in planted.conditions)
            )
            if is_shown and matches_all(planted.conditions, assignment):
                return planted
        return None

    def outcome(self, assignment: Assignment, rung: Rung) -> Outcome:
        """Return what comes of a launch."""
        cause = self.cause(assignment, rung)
        if cause is not None:
            return Outcome(kind=OutcomeKind.FAILED, failure=cause.failure)
        value = 100.0 + 50.0 * fraction({name: assignment[name] for name in self.space.parameters})
        return Outcome(kind=OutcomeKind.MEASURED, value=value)


PROBE_S, LAUNCH_S = 0.1, 1.0


def record_of(outcome: Outcome, rung: Rung = Rung.FULL) -> RunRecord:
    """Return a record that goes with an outcome."""
    measurement = Measurement(levels=()) if outcome.kind is OutcomeKind.MEASURED else None
    seconds = PROBE_S if rung is Rung.PROBE else LAUNCH_S
    return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=seconds, measurement=measurement)


class PlantedRunner(SyntheticEngine):
    """A runner of which only `resolve` is asked."""

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return the assignment as it is."""
        return Resolution(assignment=assignment)
