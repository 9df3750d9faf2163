"""The order of search: which step speaks next. Each step is a file of its own and knows nothing of the others.

1. what the user asked for with `agent try` or `agent deadends --recheck`;  2. a base that works, then the baseline
without speculation, and again now and then;  3. second launches that a failure's policy asks for, and inherited dead
ends that are stale;  4. the collectives, searched at the probe rung, escapes from what is dead there, and experiments
on the map;  5. the launch expected to improve most, times the chance that it works;  6. with the last share of the
budget draft lengths around the best, repeats of what noise does not tell apart, launches for the map, and further
improvement. README.md says how a launch is chosen.
A launch that is due climbs the cheaper rungs first (`ladder`); a study that stops below the top has its own (`below`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from agent.propose import (
    base,
    baselines,
    below,
    calibrate,
    collectives,
    contenders,
    escapes,
    experiments,
    improve,
    ladder,
    lengths,
    model_based,
    rechecks,
    second_launch,
    sums,
)
from agent.propose.history import History
from agent.propose.standing import Standing
from agent.reasons import Reason
from agent.store.trial import Kind, Trial, Work
from runners import Rung


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more is to be done, and why."""

    why: str
    nothing_works: bool = False
    resumable: bool = False
    """True when the study stopped before its budget was spent and may go on once the cause is mended."""
    node_unusable: bool = False
    """True when the node cannot be given another launch as it is."""
    storage_failed: bool = False
    """True when a disk or database is in the way."""


@dataclass(frozen=True, slots=True)
class Launches:
    """Work to run: one launch, or a batch of probes."""

    works: tuple[Work, ...]


FAULTS_IN_A_ROW = 6
"""Launches in a row that may end by the harness's own fault before the study stops."""

Proposal = Launches | Stop | None
"""None: wait until something in flight is closed."""


def propose(history: History, sampler: model_based.Sampler) -> Proposal:
    """Return what to run next. `sampler` is only a cache: a fresh one gives the same answer."""
    if (stopped := _stopped_by(history)) is not None:
        return None if _in_flight(history) else stopped
    if not history.rungs or Rung.FULL not in history.rungs:
        return _offered(history)
    return _promoted(history, _proposal(history, sampler))


def _proposal(history: History, sampler: model_based.Sampler) -> Proposal:
    if probes := rechecks.asked_probes(history):  # they cost no launch of the budget
        return Launches(probes)
    if history.spent >= history.budget:
        return None if _in_flight(history) else Stop("the budget is spent")
    if (asked := _asked(history) or rechecks.asked_launch(history)) is not None:
        return Launches((asked,))
    return _explore(history, sampler)


def _explore(history: History, sampler: model_based.Sampler) -> Proposal:
    if history.base is None:
        return _find_base(history)
    starts = (second_launch.of_starting_points, base.baseline, baselines.again)
    for step in (*starts, second_launch.of_probes, second_launch.of_checks):
        if (work := step(history)) is not None:
            return Launches((work,))
    cheap = (rechecks.stale_probes, collectives.propose, escapes.probes)
    for batch in (*cheap, experiments.at_probe_rung, experiments.at_dummy_rung):
        if probes := batch(history):
            return Launches(probes)
    if _in_flight(history) and collectives.is_searching(history):
        return None
    steps = (calibrate.propose, rechecks.stale_launch, escapes.launch)
    work = next((work for step in steps if (work := step(history)) is not None), None) or _launch(history, sampler)
    if work is not None:
        return Launches((work,))
    return None if _in_flight(history) else Stop("every assignment of the space is closed or ruled out")


def _launch(history: History, sampler: model_based.Sampler) -> Work | None:
    if history.budget - history.spent > contenders.reserved(history):
        work = experiments.early_launch(history) or improve.propose(history) or model_based.propose(history, sampler)
        return work or contenders.propose(history, Standing(history.evenly))
    standing = Standing(history.evenly)
    if (work := lengths.propose(history, standing) or contenders.propose(history, standing)) is not None:
        return work
    if contenders.awaits_a_repeat(history, standing):
        return None
    for step in (experiments.at_full_rung, second_launch.propose):
        if (work := step(history)) is not None:
            return work
    new = None
    if history.budget - history.spent > contenders.LEAST_REPEATS:  # what could not be repeated could not win
        new = improve.propose(history) or model_based.propose(history, sampler)
    if (work := new or contenders.any_repeat(history, standing)) is not None or _in_flight(history):
        return work
    return model_based.propose(history, sampler)


def _promoted(history: History, proposal: Proposal) -> Proposal:
    """A launch is due once the cheaper rungs have had their say."""
    if not isinstance(proposal, Launches) or len(proposal.works) != 1:
        return proposal
    work = proposal.works[0]
    if history.in_flight.holds(work):
        return None
    if ladder.wants_control(history, work) and (control := ladder.control(history)) is not None:
        return Launches((control,))
    first = ladder.first_below(history, work)
    return proposal if first is None else Launches((first,))


def _offered(history: History) -> Proposal:
    """What a study does that stops below the top."""
    if _in_flight(history):
        return None
    if works := below.propose(history):
        return Launches(works)
    top = history.rungs[-1].value if history.rungs else "lowest"
    return Stop(f"the study stops at the {top} rung, and everything there is settled")


def _find_base(history: History) -> Proposal:
    if _in_flight(history):  # a safer setting is worth a launch only once the one before it is known to fail
        return None
    if (work := base.propose(history)) is not None:
        return Launches((work,))
    return Stop(base.why_nothing_works(history), nothing_works=True)


def _asked(history: History) -> Work | None:
    for assignment in history.asked:
        if (work := history.admit(assignment, Kind.SEARCH, "asked for by the user", may_unlock=True)) is not None:
            return work
    return None


def _stopped_by(history: History) -> Stop | None:
    """A failure that blames no parameter (disk, network, hardware) stops the study until somebody mends it.

    Only what this agent saw: that somebody resumed the study says that the cause of an earlier stop is gone.
    """
    if (why := _harness_fails(history)) is not None:
        return Stop(why, resumable=True)
    for trial in sums.stopping(history):
        failure = trial.outcome.failure if trial.outcome is not None else None
        if failure is not None and _is_mine(history, trial):
            line = f": {failure.decisive.text}" if failure.decisive else ""
            return Stop(f"{failure.reason.value}{line}. {failure.cure}", resumable=True)
    return None


def _harness_fails(history: History) -> str | None:
    """Return why launching more makes no sense when the harness itself failed several times in a row.

    A node that leaves takes all of its trials with it, and the others go on.
    """
    latest_first = (trial for trial in reversed(history.trials) if trial.is_closed and not _is_of_lost_node(trial))
    closed = list(islice(latest_first, FAULTS_IN_A_ROW))[::-1]
    if len(closed) < FAULTS_IN_A_ROW or not all(trial.is_our_fault and _is_mine(history, trial) for trial in closed):
        return None
    note = closed[-1].outcome.note if closed[-1].outcome else ""
    return f"the last {FAULTS_IN_A_ROW} launches failed by no fault of the engine: {note}"


def _is_of_lost_node(trial: Trial) -> bool:
    failure = trial.outcome.failure if trial.outcome is not None else None
    return failure is not None and failure.reason is Reason.NODE_LOST


def _is_mine(history: History, trial: Trial) -> bool:
    return history.owner is None or trial.lease == history.owner


def _in_flight(history: History) -> bool:
    return history.in_flight.number > 0
