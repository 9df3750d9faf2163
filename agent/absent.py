"""A stored study whose node model or whose engine's code is gone: it is read all the same, and does not go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.errors import UsageError
from runners import Command, EngineSettings, Resolution, Rung, Runner, RunRecord, TrialRequest
from runners.engine_dialects import EngineNotUsableError
from runners.registry import UnknownEngineError, make_runner
from runners.rungs import rungs_of
from search_spaces import Assignment, Facts, SpecificationError


@dataclass(slots=True)
class AbsentEngine:
    """Stands where a runner would: what is stored needs no answer of it, and whatever would ask it is refused."""

    name: str
    problem: str
    """What is missing, and what to do."""
    known: Runner | None = None
    """The engine's own runner, which can still say what its commands are; None where its code is gone."""
    rungs: tuple[Rung, ...] = tuple(Rung)
    """All of them: nobody can say which ones it had, and a reader only asks whether anything is launched in full."""

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Refuse.

        Raises:
            UsageError: always, with what is missing.
        """
        raise UsageError(self.problem)

    def command(self, request: TrialRequest) -> Command:
        """Return the command of a launch.

        Raises:
            EngineNotUsableError: the engine's code is gone; what was launched is stored.
        """
        if self.known is None:
            raise EngineNotUsableError(self.problem)
        return self.known.command(request)

    def run(self, request: TrialRequest) -> RunRecord:
        """Refuse, as `resolve` does."""
        raise UsageError(self.problem)

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Refuse, as `resolve` does."""
        raise UsageError(self.problem)


def stored_engine(settings: EngineSettings) -> Runner:
    """Return the runner of a stored study; where it cannot be asked any more, an `AbsentEngine`."""
    try:
        runner = make_runner(settings.engine)
    except UnknownEngineError as error:
        problem = f"{error} Make it importable again (PYTHONPATH) to go on with the study, or to repeat a launch of it"
        return AbsentEngine(settings.engine, problem)
    try:
        rungs_of(runner, settings)
    except SpecificationError as error:
        problem = (
            f"the study's node model is gone or broken: {error}. "
            "Put the file back as it was to go on with the study, or to repeat a launch of it"
        )
        return AbsentEngine(settings.engine, problem, runner)
    return runner


def missing(runner: Runner) -> str:
    """Return what a stored study lacks to go on, and what to do; empty where nothing is missing."""
    return runner.problem if isinstance(runner, AbsentEngine) else ""


def check_present(runner: Runner) -> None:
    """Raise UsageError where what a study needs to go on is gone: the text says what, and what to do."""
    if problem := missing(runner):
        raise UsageError(problem)
