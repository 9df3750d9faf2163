"""What a node offers: every collective of a space, probed once, as a study that stops at the probe rung."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.campaign import Campaign
from agent.deadends.charter import Charter
from agent.home import Home
from agent.process_end import guarded, signals
from agent.propose import experiments
from agent.propose.history import History
from agent.propose.order import Launches, Proposal, Stop
from agent.recovery import begin_session, give_up_ownership, take_ownership
from agent.session import SessionOptions, ray_of
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore, study_names
from agent.store.trial import Kind, Trial, Work
from agent.studies import Plan
from agent.study_history import history_of
from agent.study_names import free_name, named
from agent.wishes import read_wishes
from runners import Rung, TrialRequest
from runners.registry import make_runner
from search_spaces import Assignment, assignment_key, changed_parameters

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

COLLECTIVE = "allreduce"
"""Parameter of the shipped spaces that selects the collective."""
LIBRARY = ("nccl_algo", "nccl_proto")
"""Parameters of the library below it, of which every pair is probed."""
BATCH = 32
"""Probes handed out together, from one fork server: enough of them that an engine's import is over before they are."""
MOST_ROUNDS = 3
"""Batches of experiments on what failed, in the time that is left."""
END_S = 5.0
"""What is kept of the time for ending what runs, and Ray."""
LEAST_S = 5.0
"""Time that a batch is given at least."""
STAGE = "what does this node offer?"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the table, before it is probed."""

    asked: Assignment
    """What distinguishes it: parameter → value, as asked for."""
    work: Work | None
    """The probe of it; None where nothing is probed."""
    why: str = ""
    """Why not."""


@dataclass(frozen=True, slots=True)
class Probed:
    """How the probes of a node ended."""

    study: str
    stop: Stop
    candidates: tuple[Candidate, ...]
    history: History
    seconds: float
    """From the begin of the command to the last clean-up."""


@dataclass
class ProbeCampaign(Campaign):
    """The study loop over a fixed list of probes: those that the time does not reach stay open."""

    left: list[Work] = field(default_factory=list)
    rounds: int = 0
    """How often the failures were looked into."""

    def _propose(self) -> Proposal:
        if not self.left and not self.in_flight:
            self.left = self._experiments()
        if not self.left:
            return Stop("everything is probed") if not self.in_flight else None
        batch, self.left = self.left[:BATCH], self.left[BATCH:]
        return Launches(tuple(batch))

    def _experiments(self) -> list[Work]:
        """Return probes that tell the causes of the failures apart: a single one proves nothing of its cause alone."""
        self.rounds += 1
        works = experiments.propose(self.history(), Rung.PROBE) if self.rounds <= MOST_ROUNDS else ()
        return list({work.identity: work for work in works}.values())

    def _requests(self, trials: Sequence[Trial], history: History) -> list[TrialRequest]:
        """Bound a batch by what is left of the time."""
        requests = super()._requests(trials, history)
        if self.deadline is None:
            return requests
        left = max(LEAST_S, self.deadline - time.monotonic())
        deadlines = requests[0].deadlines.model_copy(update={"batch_s": left})
        return [request.model_copy(update={"deadlines": deadlines}) for request in requests]


class _Progress:
    """Shows how far the probes are."""

    def __init__(self, status: Status, total: int) -> None:
        self._status, self._total, self._closed = status, total, 0

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Nothing: what runs is about to be closed."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """Count it."""
        self._closed += 1
        self._status.update(f"probing: {self._closed} of {self._total}")

    def tick(self) -> None:
        """Nothing to do."""


def probe_node(
    plan: Plan, home: Home, console: Console, *, sizes: tuple[int, ...], began: float, time_budget_s: float
) -> Probed:
    """Probe every collective of the planned study's space, store what was found, and leave nothing behind.

    Args:
        plan: A checked study; it is stored under a name of its own.
        home: Where its artifacts go.
        console: Where the progress is shown.
        sizes: Message sizes in bytes; empty for those of the model and the workload.
        began: Value of the monotonic clock when the command began.
        time_budget_s: Seconds after which nothing more is probed.

    Raises:
        NodeUnusableError: Ray does not come up or lacks the resources.
        StorageError: the storage failed.
    """
    store = _store(plan, home, sizes)
    runner = make_runner(store.manifest.settings.engine.engine)
    atlas = Charter(store.manifest.space, store.manifest.facts, ()).chart((), (), frozenset())
    candidates = tuple(candidates_of(history_of(store, runner, atlas, read_wishes(store))))
    works: dict[str, Work] = {}
    for each in candidates:
        if each.work is not None:
            works.setdefault(each.work.identity, each.work)  # what runs as an earlier one is probed as that
    options = SessionOptions(tracking_uri="", ray_address=plan.spec.ray_address)
    lease, session_id = take_ownership(store, take_over=False), secrets.token_hex(16)
    begin_session(store, session_id)
    try:
        with (
            guarded(session_id),
            signals(console) as interruption,
            ray_of(options, store, console, "agent probe") as pool,
            console.status("probing") as status,
        ):
            campaign = ProbeCampaign(
                store=store,
                runner=runner,
                pool=pool,
                home=home,
                lease=lease,
                environment=dict(os.environ),
                observers=(_Progress(status, len(works)),),
                interruption=interruption,
                deadline=began + max(time_budget_s - END_S, time_budget_s / 2),
                left=list(works.values()),
            )
            stop = campaign.run()
        return Probed(store.name, stop, candidates, campaign.history(), time.monotonic() - began)
    finally:
        give_up_ownership(store, lease)


def _store(plan: Plan, home: Home, sizes: tuple[int, ...]) -> StudyStore:
    """Create the study of the probes. `agent resume` without a name still means the last search."""
    home.create()
    storage = open_storage(plan.storage_url)
    wanted = plan.spec.name or f"probe-{plan.manifest.settings.name}"
    manifest = named(plan.manifest, free_name(wanted, study_names(storage)))
    settings = manifest.settings.model_copy(update={"probe_sizes": sizes})
    store = StudyStore.create(storage, plan.storage_url, manifest.model_copy(update={"settings": settings}))
    store.set_attribute(BUDGET, 0)
    return store


def candidates_of(history: History) -> Iterator[Candidate]:
    """Yield every collective alone, then every algorithm and protocol that it can be combined with, then the rest.

    So a short time shows every backend before it shows every setting of one of them.
    """
    seen: set[str] = set()
    for asked in (*_of_collectives(history), *_of_library(history), *_others(history)):
        point = history.space.normalise({**history.default, **asked}, history.facts)
        if any(point[name] != value for name, value in asked.items()):
            continue  # it has no meaning beside the other values
        if assignment_key(point) in seen:
            continue
        seen.add(assignment_key(point))
        work = history.admit(point, Kind.PROBE, STAGE)
        why = "" if work else next(iter(history.ruled_out), "ruled out")
        history.ruled_out.clear()
        yield Candidate(asked, work, why)


def _values(history: History, name: str) -> tuple[Assignment, ...]:
    parameter = history.space.parameters.get(name)
    if parameter is None or not parameter.seen_by_probe or not parameter.can_vary(history.facts):
        return ()
    return tuple({name: value} for value in parameter.domain)


def _of_library(history: History) -> Iterator[Assignment]:
    pairs = [_values(history, name) or ({},) for name in LIBRARY]
    conditions = [history.space.parameters[name].active_when for name in LIBRARY if name in history.space.parameters]
    allowed = {str(value) for each in conditions for value in each.get(COLLECTIVE, ())}
    for collective in _values(history, COLLECTIVE):
        if str(collective[COLLECTIVE]) in allowed:
            for chosen in itertools.product(*pairs):
                merged: Assignment = dict(collective)
                for each in chosen:
                    merged |= each
                yield merged


def _of_collectives(history: History) -> tuple[Assignment, ...]:
    return _values(history, COLLECTIVE) or ({},)


def _others(history: History) -> Iterator[Assignment]:
    """What else decides which collective is called: how experts are spread over the ranks."""
    for name in history.space.probe_parameters:
        parameter = history.space.parameters[name]
        if name not in (COLLECTIVE, *LIBRARY) and parameter.effect_beyond_collectives and not parameter.monotone:
            yield from _values(history, name)


def found_in(probed: Probed, candidate: Candidate) -> Trial | None:
    """Return the closed probe of a candidate, or None where the time did not reach it."""
    if candidate.work is None:
        return None
    asked, ran = candidate.work.asked_identity, candidate.work.identity
    closed = [each for each in probed.history.probes if each.counts and each.work.rung is Rung.PROBE]
    as_asked = (each for each in closed if each.work.asked_identity == asked)
    return next(as_asked, next((each for each in closed if each.work.identity == ran), None))


def label(candidate: Candidate, history: History) -> Assignment:
    """Return what names a candidate in a table: what differs from the engine's default, and what was asked for."""
    point = candidate.work.requested if candidate.work else {**history.default, **candidate.asked}
    changed = {name: point[name] for name in changed_parameters(point, history.default)}
    return {**{COLLECTIVE: point[COLLECTIVE]}, **changed} if COLLECTIVE in point else changed
