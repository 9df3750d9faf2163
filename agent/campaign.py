"""The study loop, in the order in which the data flows: propose → place → run → classify → close → learn → mirror."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from agent.clean_evidence import launch_secrets
from agent.deadends.atlas import Atlas
from agent.deadends.charter import Charter
from agent.disk import disk_problem
from agent.fleet import Fleet
from agent.home import Home
from agent.interruption import Interruption
from agent.judge import judged, lost_node, lost_task
from agent.long_lived import LongLived, set_aside
from agent.observer import Observer
from agent.outcome import Outcome, OutcomeKind
from agent.places import Places
from agent.private_files import check_own
from agent.propose.history import History
from agent.propose.model_based import Sampler
from agent.propose.order import Launches, Proposal, Stop, propose
from agent.quarantine import quarantine_message, slot_message
from agent.ray_lives import RayLives
from agent.recovery import end_launch
from agent.redaction import redact_text
from agent.requests import request_of
from agent.savings import Savings
from agent.stopping import stop_rule
from agent.store.study_store import RULED_OUT, StudyStore
from agent.store.trial import Kind, Lease, Trial, Work
from agent.study_history import history_of
from agent.study_rules import rules_of
from agent.wishes import Wishes, read_counts, read_wishes
from runners import Runner, RunRecord, TrialRequest
from runners.ray_nodes import RayNode
from runners.ray_pool import Lost, PoolError, RayPool, Running

POLL_S = 0.2
PAUSED_BY_THE_USER = "paused"
WISHES_S = 0.5
"""How old the user's wishes (more budget, an assignment to try) may be when something is proposed."""
CANCEL_S = 15.0
"""How long a running trial may take to clean up after itself when it is interrupted."""


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
    """Trials (or batches of probes) at the same time on one node."""
    fleet: Fleet | None = None
    """The nodes of somebody's cluster; None where the only node is this one."""
    deadline: float | None = None
    """Value of the monotonic clock after which nothing new is started."""
    lost_to: Callable[[], str | None] = lambda: None
    """Who took the study over from this agent, in words; None while it is ours."""
    tell: Callable[[str], None] = lambda _: None
    """Is told what the user should know at once."""
    in_flight: list[tuple[Running, tuple[Trial, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        space = self.store.manifest.space
        self._charter = Charter(space, self.store.manifest.facts, self.store.manifest.inherited)
        self._sampler = Sampler(space)
        self._rules = rules_of(self.store)
        self._secrets = launch_secrets(self.store.manifest.settings.engine, self.environment)
        self._wishes, self._wished_at = read_wishes(self.store), time.monotonic()
        self._savings = Savings(read_counts(self.store))
        self._history: tuple[tuple[int, Wishes], History] | None = None
        self._places = Places(self.pool, self.slots, self.fleet)
        self._ray = RayLives(self.pool, self._places)
        self._folder = self.home.artifact_dir(self.store.name, "")
        self._long_lived = LongLived()
        self._quarantine: str | None = None
        """What a launch left behind that its clean-up could not remove: whatever ran beside it would not be itself."""

    def run(self) -> Stop:
        """Run the study until its proposer stops it, somebody interrupts it, or its time is up."""
        with set_aside() as self._long_lived:
            return self._run()

    def _run(self) -> Stop:
        while True:
            if (taker := self.lost_to()) is not None:
                return self._yield_to(taker)
            if self.interruption:
                self.abandon_in_flight()
                return Stop(f"interrupted by {self.interruption}", resumable=True)
            if not self.in_flight and (problem := disk_problem(self._folder)) is not None:
                return Stop(f"{problem}. Make room, then resume", resumable=True, storage_failed=True)
            if (trouble := self._ray.trouble()) and (stop := self._replace_ray(trouble)) is not None:
                return stop
            if self._quarantine is not None and not self.in_flight:
                return Stop(self._quarantine, resumable=True, node_unusable=True)
            if self.deadline is not None and time.monotonic() > self.deadline and not self.in_flight:
                return Stop("the time budget is spent", resumable=True)
            if self._fresh_wishes().is_paused and not self.in_flight:
                return Stop(PAUSED_BY_THE_USER, resumable=True)
            try:
                stop = self._step()
            except PoolError as error:
                self._ray.failure = str(error)
                continue
            if stop is not None:
                return stop

    def _step(self) -> Stop | None:
        """Launch what is proposed where there is room for it, else wait a moment; return why the study stops."""
        if (problem := self._places.look(is_idle=not self.in_flight)) is not None:
            return Stop(problem, resumable=True, node_unusable=True)
        proposal = self._propose() if self._may_start() else None
        if isinstance(proposal, Stop):
            return proposal
        if isinstance(proposal, Launches):
            self._start(proposal.works)
        else:
            self._wait()
        return None

    def _propose(self) -> Proposal:
        self._fresh_wishes()
        history = self.history()
        history.refusals.clear()
        proposal = propose(history, self._sampler)
        launched = len(proposal.works) if isinstance(proposal, Launches) else 0
        if self._savings.note(history.refusals, launched):
            self.store.set_attribute(RULED_OUT, self._savings.counts())
        return proposal

    def _fresh_wishes(self) -> Wishes:
        """Return what the user wishes for, read anew now and then."""
        if time.monotonic() - self._wished_at > WISHES_S:
            self._wishes, self._wished_at = read_wishes(self.store), time.monotonic()
        return self._wishes

    def history(self) -> History:
        """Return the study as the proposer sees it; the same object as long as nothing has changed."""
        state = (self.store.version, self._wishes)
        if self._history is None or self._history[0] != state:
            self._history = (state, self._history_with(self.atlas()))
        return self._history[1]

    def _history_with(self, atlas: Atlas) -> History:
        found = history_of(self.store, self.runner, atlas, self._wishes)
        return replace(found, ruled_out=self._charter.ruled_out, owner=self.lease, memo=self._sampler.memo)

    def atlas(self) -> Atlas:
        """Return the map as the closed trials have it."""
        return self._charter.chart(self.store.trials_of(), self.store.probes_of(), self._wishes.forgotten_names)

    def abandon_in_flight(self) -> None:
        """End what is running and close it as interrupted: the work is queued again."""
        for running, trials in self.in_flight:
            self._cancel(running, trials)
            self._interrupt(trials, f"interrupted by {self.interruption}")
        self.in_flight.clear()

    def _yield_to(self, taker: str) -> Stop:
        """End what is running and write nothing: the new owner has closed it already."""
        for running, trials in self.in_flight:
            self._cancel(running, trials)
        self.in_flight.clear()
        return Stop(f"{taker} took the study over", resumable=True)

    def _cancel(self, running: Running, trials: Sequence[Trial]) -> None:
        """End a launch: as its runner does it where Ray still works, and what is left of it in any case."""
        with suppress(PoolError):
            self.pool.cancel(running, CANCEL_S)
        end_launch(trials)

    def _replace_ray(self, trouble: str) -> Stop | None:
        """Put a new Ray in the place of one that died: that blames neither the work in flight nor the engine."""
        for _, trials in self.in_flight:
            end_launch(trials)
            self._interrupt(trials, trouble)
        self.in_flight.clear()
        return self._ray.replace(trouble)

    def _interrupt(self, trials: Sequence[Trial], why: str) -> None:
        outcome = Outcome(kind=OutcomeKind.INTERRUPTED, note=why)
        self._tell_closed([self._close(trial, outcome, None) for trial in trials])

    def _may_start(self) -> bool:
        in_time = self.deadline is None or time.monotonic() <= self.deadline
        has_room = self._places.has_room(self._running) and not self._wishes.is_paused
        return in_time and has_room and self._quarantine is None and (not self.in_flight or self._can_write())

    @property
    def _running(self) -> list[Running]:
        return [running for running, _ in self.in_flight]

    def _can_write(self) -> bool:
        return disk_problem(self._folder) is None

    def _start(self, works: Sequence[Work]) -> None:
        cookie, history = secrets.token_hex(16), self.history()
        trials = tuple(self._open(work, cookie) for work in works)
        requests = self._requests(trials, history)
        try:
            running = self._places.submit(requests, self._running)
        except PoolError as error:
            self._interrupt(trials, str(error))
            raise
        self.in_flight.append((running, trials))
        for observer in self.observers:
            observer.trials_opened(trials)

    def _requests(self, trials: Sequence[Trial], history: History) -> list[TrialRequest]:
        """Return what the runner is asked; `history` is the study before the trials were opened."""
        manifest, environment = self.store.manifest, self.environment
        shares = self.slots > 1
        rules = {trial.number: stop_rule(history, trial.work) for trial in trials}
        return [request_of(each, manifest, environment, rules[each.number], shares_node=shares) for each in trials]

    def _open(self, work: Work, cookie: str) -> Trial:
        is_probe = work.kind is Kind.PROBE
        number = len(self.store.probes() if is_probe else self.store.trials())
        label = f"probes/{number}" if is_probe else str(number)
        folder = self.home.artifact_dir(self.store.name, label)
        check_own(self.home.path, folder)
        return self.store.open_trial(work, cookie, self.lease, str(folder))

    def _wait(self) -> None:
        """Take in all trials that have ended. They are judged by the map as it is, which learns from them together."""
        ended, atlas = self._places.wait(self._running, POLL_S), self.history().atlas
        closed: list[Trial] = []
        try:
            for running, trials in list(self.in_flight):
                result = self._places.result(running, has_ended=running in ended)
                if isinstance(result, Lost) and self.pool.dead_daemon is not None:
                    break  # no fault of this work
                if result is not None:
                    self.in_flight.remove((running, trials))
                    closed.extend(self._take(trials, result, atlas, running.node))  # one by one, whatever happens
        finally:
            self._tell_closed(closed)
        for observer in self.observers:
            observer.tick()

    def _take(
        self, trials: Sequence[Trial], result: list[RunRecord] | Lost, atlas: Atlas, node: RayNode | None
    ) -> Iterator[Trial]:
        """Close what ran together; yield each as it was stored."""
        if isinstance(result, Lost):
            end_launch(trials)
            why = redact_text(result.why, self._secrets)
            outcome = lost_node(why) if result.is_node_lost else lost_task(why)
            for trial in trials:
                yield self._close(trial, self._unless_disk_full(outcome), None)
            return
        for trial, record in zip(trials, result, strict=True):
            found = judged(trial, record, self._history_with(atlas), self._rules, self._secrets)
            outcome = found.outcome if found.outcome.failure is None else self._unless_disk_full(found.outcome)
            yield self._close(found.trial, outcome, found.record)
            if not record.leftovers.is_clean:
                self._set_aside(trial, record, node)

    def _set_aside(self, trial: Trial, record: RunRecord, node: RayNode | None) -> None:
        if self._places.set_aside(node, why := quarantine_message(trial, record)):
            return
        if self.pool.goes_on_without_a_slot():
            self.tell(slot_message(trial, record))
        else:
            self._quarantine = why

    def _unless_disk_full(self, outcome: Outcome) -> Outcome:
        """Whatever a launch looks like that could not write: it says nothing, and is made again."""
        if self._can_write():
            return outcome
        return Outcome(kind=OutcomeKind.INTERRUPTED, note=disk_problem(self._folder) or "the disk was full")

    def _close(self, trial: Trial, outcome: Outcome, record: RunRecord | None) -> Trial:
        closed = self.store.close(trial, outcome, record)
        self._ray.deaths = 0 if closed.counts else self._ray.deaths
        self._long_lived.grown(self.store.version)
        return closed

    def _tell_closed(self, closed: Sequence[Trial]) -> None:
        for trial in closed:
            for observer in self.observers:
                observer.trial_closed(trial, self.history())
