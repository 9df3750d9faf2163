"""The study loop, in the order in which the data flows: propose → place → run → classify → close → learn → mirror."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from agent.clean_evidence import clean_outcome, clean_record, launch_secrets
from agent.deadends.atlas import Atlas
from agent.deadends.charter import Charter
from agent.deadends.refutations import with_refutations
from agent.effects import observed_work, of_active_parameters
from agent.home import Home
from agent.judge import judge, lost_task
from agent.outcome import Outcome, OutcomeKind
from agent.propose.history import History
from agent.propose.model_based import Sampler
from agent.propose.order import Launches, Proposal, Stop, propose
from agent.requests import request_of
from agent.savings import Savings
from agent.shown import with_replaced
from agent.store.study_store import RULED_OUT, StudyStore
from agent.store.trial import Kind, Lease, Trial, Work
from agent.wishes import Wishes, read_counts, read_wishes
from runners import Measurement, Rung, Runner, RunRecord
from runners.cookies import kill_processes
from runners.ray_pool import Lost, RayPool, Running

POLL_S = 0.2
WISHES_S = 0.5
"""How old the user's wishes (more budget, an assignment to try) may be when something is proposed."""
CANCEL_S = 15.0
"""How long a running trial may take to clean up after itself when it is interrupted."""


class Observer(Protocol):
    """Who is told what happens: the live view and the mirror. None of them may steer."""

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Trials were stored as running and handed out."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """A trial was closed; `history` is the study with it."""

    def tick(self) -> None:
        """Called a few times a second while waiting."""


class Interruption:
    """Set by the first signal; read between two steps."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def note(self, signal_number: int) -> None:
        """Remember that somebody wants the search to end."""
        self.signal_number = signal_number

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def __str__(self) -> str:
        return signal.Signals(self.signal_number).name if self.signal_number is not None else "not interrupted"


@dataclass
class Campaign:
    """Everything one run of the loop works with."""

    store: StudyStore
    runner: Runner
    pool: RayPool
    home: Home
    lease: Lease
    environment: Mapping[str, str]
    observers: Sequence[Observer]
    interruption: Interruption
    slots: int = 1
    """Trials (or batches of probes) at the same time."""
    deadline: float | None = None
    """Value of the monotonic clock after which nothing new is started."""
    in_flight: list[tuple[Running, tuple[Trial, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        space = self.store.manifest.space
        self._charter = Charter(space, self.store.manifest.facts, self.store.manifest.inherited)
        self._sampler = Sampler(space)
        self._secrets = launch_secrets(self.store.manifest.settings.engine, self.environment)
        self._wishes, self._wished_at = read_wishes(self.store), time.monotonic()
        self._savings = Savings(read_counts(self.store))
        self._history: tuple[tuple[int, Wishes], History] | None = None
        self._quarantine: str | None = None
        """What a launch left behind that its clean-up could not remove: whatever ran beside it would not be itself."""

    def run(self) -> Stop:
        """Run the study until its proposer stops it, somebody interrupts it, or its time is up."""
        while True:
            if self.interruption:
                self.abandon_in_flight()
                return Stop(f"interrupted by {self.interruption}", resumable=True)
            if self._quarantine is not None and not self.in_flight:
                return Stop(self._quarantine, resumable=True, node_unusable=True)
            if self.deadline is not None and time.monotonic() > self.deadline and not self.in_flight:
                return Stop("the time budget is spent", resumable=True)
            proposal = self._propose() if self._may_start() else None
            if isinstance(proposal, Stop):
                return proposal
            if isinstance(proposal, Launches):
                self._start(proposal.works)
            else:
                self._wait()

    def _propose(self) -> Proposal:
        if time.monotonic() - self._wished_at > WISHES_S:
            self._wishes, self._wished_at = read_wishes(self.store), time.monotonic()
        history = self.history()
        history.refusals.clear()
        proposal = propose(history, self._sampler)
        launched = len(proposal.works) if isinstance(proposal, Launches) else 0
        if self._savings.note(history.refusals, launched):
            self.store.set_attribute(RULED_OUT, self._savings.counts())
        return proposal

    def history(self) -> History:
        """Return the study as the proposer sees it; the same object as long as nothing has changed."""
        state = (self.store.version, self._wishes)
        if self._history is None or self._history[0] != state:
            self._history = (state, self._fresh_history())
        return self._history[1]

    def _fresh_history(self) -> History:
        found = history_of(self.store, self.runner, self.atlas(), self._wishes)
        return replace(found, ruled_out=self._charter.ruled_out, owner=self.lease)

    def atlas(self) -> Atlas:
        """Return the map as the closed trials have it."""
        return self._charter.chart(self.store.trials(), self.store.probes(), self._wishes.forgotten_names)

    def abandon_in_flight(self) -> None:
        """End what is running and close it as interrupted: the work is queued again."""
        for running, trials in self.in_flight:
            self.pool.cancel(running, CANCEL_S)
            for trial in trials:
                kill_processes(trial.cookie)
                self._close(
                    trial, Outcome(kind=OutcomeKind.INTERRUPTED, note=f"interrupted by {self.interruption}"), None
                )
        self.in_flight.clear()

    def _may_start(self) -> bool:
        in_time = self.deadline is None or time.monotonic() <= self.deadline
        return in_time and self._quarantine is None and len(self.in_flight) < self.slots

    def _start(self, works: Sequence[Work]) -> None:
        cookie = secrets.token_hex(16)
        trials = tuple(self._open(work, cookie) for work in works)
        requests = [request_of(trial, self.store.manifest, self.environment) for trial in trials]
        self.in_flight.append((self.pool.submit(requests), trials))
        for observer in self.observers:
            observer.trials_opened(trials)

    def _open(self, work: Work, cookie: str) -> Trial:
        is_probe = work.kind is Kind.PROBE
        number = len(self.store.probes() if is_probe else self.store.trials())
        label = f"probes/{number}" if is_probe else str(number)
        folder = self.home.artifact_dir(self.store.name, label)
        return self.store.open_trial(work, cookie, self.lease, str(folder))

    def _wait(self) -> None:
        ended = self.pool.wait([running for running, _ in self.in_flight], POLL_S)
        for running, trials in list(self.in_flight):
            if running in ended:
                self.in_flight.remove((running, trials))
                self._take(trials, self.pool.result(running))
        for observer in self.observers:
            observer.tick()

    def _take(self, trials: Sequence[Trial], result: list[RunRecord] | Lost) -> None:
        if isinstance(result, Lost):
            kill_processes(trials[0].cookie)
            for trial in trials:
                self._close(trial, lost_task(result.why), None)
            return
        for trial, record in zip(trials, result, strict=True):
            space, facts = self.store.manifest.space, self.store.manifest.facts
            interruptions = self.history().interruptions[trial.work.identity]
            outcome = clean_outcome(judge(trial, record, space, self._baseline(), interruptions), self._secrets)
            cleaned = clean_record(record, self._secrets)
            cleaned = with_replaced(cleaned, trial.work, space)
            cleaned = of_active_parameters(cleaned, trial.work.resolved, space, facts)
            ran = trial.model_copy(update={"work": observed_work(trial.work, cleaned, space, facts)})
            self._close(ran, with_refutations(outcome, ran, self.atlas(), space), cleaned)
            if not record.leftovers.is_clean:
                self._quarantine = quarantine_message(trial, record)

    def _close(self, trial: Trial, outcome: Outcome, record: RunRecord | None) -> None:
        closed = self.store.close(trial, outcome, record)
        history = self.history()
        for observer in self.observers:
            observer.trial_closed(closed, history)

    def _baseline(self) -> Measurement | None:
        """Return what the baseline put out: every later launch has to agree with it."""
        baselines = (trial for trial in self.store.trials() if trial.work.kind is Kind.BASELINE and trial.is_measured)
        first = next(baselines, None)
        return first.record.measurement if first and first.record else None


def quarantine_message(trial: Trial, record: RunRecord) -> str:
    """Return why nothing more is launched on a node, and what to do there."""
    left = record.leftovers
    parts = [f"process {pid}" for pid in left.processes]
    parts += [f"shared memory {name}" for name in left.shared_memory]
    parts += [f"{left.gpu_memory_bytes / 2**30:.1f} GiB of GPU memory"] if left.gpu_memory_bytes else []
    parts += [f"port {port}" for port in left.ports] + list(left.folders)
    return (
        f"node {record.node or 'unknown'} is quarantined: launch #{trial.number} left {', '.join(parts)}, which could "
        "not be removed, so the next launch would not be measured alone. Remove it, then resume"
    )


def history_of(store: StudyStore, runner: Runner, atlas: Atlas, wishes: Wishes) -> History:
    """Return a stored study as the proposer and every reader see it."""
    return History(
        settings=store.manifest.settings,
        space=store.manifest.space,
        facts=store.manifest.facts,
        runner=runner,
        trials=store.trials(),
        probes=tuple(each for each in store.probes() if each.work.rung is Rung.PROBE),
        checks=tuple(each for each in store.probes() if each.work.rung is not Rung.PROBE),
        atlas=atlas,
        budget=wishes.budget,
        asked=wishes.asked,
        rechecks=wishes.rechecks,
    )
