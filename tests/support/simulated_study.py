"""A study without Ray, engine or disk: the loop's rules, driven by a planted truth. Trials are values in a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from agent.deadends.charter import Charter
from agent.deadends.dead_end import DeadEnd
from agent.deadends.refutations import with_refutations
from agent.effects import observed_work
from agent.outcome import Outcome, OutcomeKind
from agent.propose.history import History
from agent.propose.model_based import Sampler
from agent.propose.order import Launches, Proposal, Stop, propose
from agent.settings import StudySettings
from agent.spread import Spread
from agent.stopping import stop_rule
from agent.store.trial import Kind, Lease, Trial, Work
from runners import Rung, Runner, RunRecord, StopRule
from runners.contract import EngineSettings
from search_spaces import Assignment, Facts, SearchSpace
from tests.support.planted import FACTS, PlantedRunner, Truth, record_of

LEASE = Lease(host="here", boot_id="boot", pid_namespace="pid:[1]", pid=1, started_ticks=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
MOST_STEPS = 5000
"""No study of a test takes as many proposals: reaching this means that it does not end."""

Judge = Callable[[Trial, int], Outcome]
"""(trial, how many of its identity were closed before) → outcome."""


def settings(seed: int = 0) -> StudySettings:
    """Return the settings of a small study."""
    engine = EngineSettings(engine="synthetic", num_ranks=2, device="cpu")
    return StudySettings(name="study", engine=engine, space="small", seed=seed)


@dataclass
class SimulatedStudy:
    """One study and the loop that drives it."""

    truth: Truth
    budget: int
    seed: int = 0
    slots: int = 1
    asked: tuple[Assignment, ...] = ()
    inherited: tuple[DeadEnd, ...] = ()
    rechecks: Mapping[str, int] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()
    runner: Runner = field(default_factory=PlantedRunner)
    judge: Judge | None = None
    """What comes of a launch; by default what the truth says."""
    trials: list[Trial] = field(default_factory=list)
    probes: list[Trial] = field(default_factory=list)
    lease: Lease = LEASE
    known_spread: Spread | None = None
    on_proposal: Callable[[History, Proposal], None] | None = None

    def __post_init__(self) -> None:
        self._charter = Charter(self.space, self.facts, self.inherited)
        self._sampler = Sampler(self.space)
        self.stop_rules: dict[str, StopRule | None] = {}
        """Identity of a launch → the rule under which it ran."""
        self._in_flight: list[tuple[Trial, ...]] = [
            (trial,) for trial in (*self.trials, *self.probes) if not trial.is_closed
        ]

    @property
    def space(self) -> SearchSpace:
        """The space that is searched."""
        return self.truth.space

    @property
    def facts(self) -> Facts:
        """The facts of its node."""
        return FACTS

    @property
    def settings(self) -> StudySettings:
        """What the study was asked for."""
        return settings(self.seed)

    @property
    def works(self) -> list[Work]:
        """The work that counts, launches and then probes, in order."""
        return [trial.work for trial in (*self.trials, *self.probes) if trial.counts]

    def history(self) -> History:
        """Return the study as the proposer sees it."""
        trials, companion = tuple(self.trials), tuple(self.probes)
        return History(
            settings=self.settings,
            space=self.space,
            facts=self.facts,
            runner=self.runner,
            trials=trials,
            probes=tuple(each for each in companion if each.work.rung is Rung.PROBE),
            checks=tuple(each for each in companion if each.work.rung is not Rung.PROBE),
            atlas=self._charter.chart(trials, companion, self.forgotten),
            budget=self.budget,
            asked=self.asked,
            rechecks=self.rechecks,
            known_spread=self.known_spread,
            owner=self.lease,
            memo=self._sampler.memo,
        )

    def run(self, steps: int = MOST_STEPS) -> Stop | None:
        """Drive until the proposer stops the study; None when that many proposals were made before."""
        for _ in range(steps):
            history = self.history()
            proposal = propose(history, self._sampler) if len(self._in_flight) < self.slots else None
            if self.on_proposal is not None:
                self.on_proposal(history, proposal)
            if isinstance(proposal, Stop):
                return proposal
            if isinstance(proposal, Launches):
                self.stop_rules |= {work.identity: stop_rule(history, work) for work in proposal.works}
                self._in_flight.append(tuple(self._open(work) for work in proposal.works))
            else:
                assert self._in_flight, "the proposer waits for nothing"
                for trial in self._in_flight.pop(0):
                    self._close(trial)
        assert steps < MOST_STEPS, "the study does not end"
        return None

    def resumed(self) -> SimulatedStudy:
        """Return what another agent makes of the stored trials: what was in flight is closed as interrupted."""
        interrupted = Outcome(kind=OutcomeKind.INTERRUPTED, note="the agent that ran it is gone")
        return replace(
            self,
            trials=[trial if trial.is_closed else _closed(trial, interrupted) for trial in self.trials],
            probes=[trial if trial.is_closed else _closed(trial, interrupted) for trial in self.probes],
            lease=LEASE.model_copy(update={"pid": self.lease.pid + 1}),
        )

    def launch(self, work: Work) -> None:
        """Run a piece of work that nobody proposed."""
        self._close(self._open(work))

    def _open(self, work: Work) -> Trial:
        kept = self.probes if work.kind is Kind.PROBE else self.trials
        trial = Trial(
            study="study/probes" if work.kind is Kind.PROBE else "study",
            number=len(kept),
            work=Work.model_validate(work.model_dump()),
            cookie="c",
            lease=self.lease,
            started_at=START + timedelta(seconds=len(self.trials) + len(self.probes)),
        )
        kept.append(trial)
        return trial

    def _close(self, trial: Trial) -> None:
        kept = self.probes if trial.work.kind is Kind.PROBE else self.trials
        before = sum(other.is_closed and other.work.identity == trial.work.identity for other in kept)
        outcome, record = self.answer(trial, before)
        trial = trial.model_copy(update={"work": observed_work(trial.work, record, self.space, self.facts)})
        atlas = self._charter.chart(self.trials, self.probes, self.forgotten)
        outcome = with_refutations(outcome, trial, atlas, self.space)
        kept[trial.number] = _closed(trial, outcome, record)

    def answer(self, trial: Trial, before: int) -> tuple[Outcome, RunRecord]:
        """Return what comes of a launch; `before` counts the closed ones of its identity."""
        judged = self.judge(trial, before) if self.judge else None
        outcome = judged or self.truth.outcome(trial.work.resolved, trial.work.rung)
        return outcome, record_of(outcome, trial.work.rung)


def full_launches(study: SimulatedStudy) -> list[Work]:
    """Return the launches at the top rung that count, in order."""
    return [work for work in study.works if work.rung is Rung.FULL]


def _closed(trial: Trial, outcome: Outcome, record: RunRecord | None = None) -> Trial:
    return trial.model_copy(
        update={
            "outcome": outcome,
            "record": record or record_of(outcome),
            "closed_at": trial.started_at + timedelta(seconds=1),
        }
    )
