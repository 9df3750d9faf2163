"""Experiments on the map: which launch or probe tells the possible causes of a failure apart.

A failure leaves several conjunctions that may have caused it (`agent.deadends.explain`), each with its share. An
experiment takes some of the failure's values over to an assignment that works, and is worth what its answer is
expected to tell: most where half of the shares say that it fails. It runs at the cheapest rung that shows the failure.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.deadends.claims import claims
from agent.deadends.suspicion import Suspicion
from agent.propose import audits, collectives, experiment_points, prices, sums, tallies, thresholds, working
from agent.propose.closed import of_closed
from agent.propose.expectation import Expectation, hiding, likely_causes, most_told
from agent.propose.history import History, Refusal
from agent.propose.second_launch import LARGEST_SHARE
from agent.store.trial import Kind, Work
from runners import Rung
from search_spaces import Assignment, Comparison

_ASKS = ("what makes ", " fail?")
MOST_EACH = 12
"""Experiments for each failure: what is not clear by then stays suspected."""
MOST_ALIKE = {False: 2 * MOST_EACH, True: MOST_EACH}
"""Experiments for all failures that look alike, and again for each dead end of theirs; fewer where it may be chance."""
CLEAR = 2
"""How many times as many there may be where the cause is clear, and only chance is left to exclude."""
MOST_WEIGHED = 24
"""Failures for which experiments are looked for at a time, the most urgent first: a long study suspects more."""
YIELDS = 0.7
"""What is left of a failure's turn after each experiment on what looks like it."""
EARLY_SHARE = 0.1
"""Share of the launches so far that the map may ask for while the search is under way."""
LEAST_AT_PROBE = 0.3
"""Share of the causes that a probe can see from which it is asked first."""
LEAST_WORTH = 0.1
"""Expected information, in bits, below which an experiment is not run."""
NEARLY_CLEAR = 0.5
"""Share of the likeliest cause from which an experiment is worth a longer search."""


def at_probe_rung(history: History) -> tuple[Work, ...]:
    """Return the probes that the map asks for, one for each unexplained failure, or nothing."""
    if collectives.is_searching(history) or collectives.room(history) <= 0:
        return ()
    wanted = of_closed(history, "wanted", lambda: _Wanted.of(history), tallies.open_questions(history))
    history.refusals.extend(wanted.refusals)
    history.ruled_out.update(wanted.ruled_out)
    return wanted.probes[: min(collectives.BATCH, collectives.room(history))]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The probes that the map asks for, and what is ruled out on the way: tallied each time that they are asked for."""

    probes: tuple[Work, ...]
    refusals: Sequence[Refusal]
    ruled_out: Mapping[str, int]

    @classmethod
    def of(cls, history: History) -> _Wanted:
        own = replace(history, refusals=[], ruled_out=Counter())
        wanted = itertools.chain.from_iterable(step(own, Rung.PROBE) for step in STEPS)
        return cls(tuple({work.identity: work for work in wanted}.values()), own.refusals, own.ruled_out)


def at_dummy_rung(history: History) -> tuple[Work, ...]:
    """Return one launch with dummy weights that the map asks for, or nothing: it costs no launch of the budget."""
    is_busy = bool(tallies.open_trials(history)[2])
    if is_busy or Rung.DUMMY not in history.rungs or prices.room(history, Rung.DUMMY) <= 0:
        return ()
    work = next(propose(history, Rung.DUMMY), None)
    return () if work is None else (work,)


def early_launch(history: History) -> Work | None:
    """Return the launch that the map asks for while the search is still under way, or None.

    What is wrongly suspected keeps the search away from what works; limits of memory are narrowed by the search itself,
    and what is clear but for chance is not wrong.
    """
    if sums.num_confirmations(history) >= int(EARLY_SHARE * history.spent):
        return None
    return next((work for work in propose(history, Rung.FULL, is_early=True)), None)


def at_full_rung(history: History) -> Work | None:
    """Return the launch that the map asks for, or None when nothing is unclear or the share for it is spent."""
    if sums.num_confirmations(history) >= LARGEST_SHARE * history.budget:
        return None
    return next(itertools.chain.from_iterable(step(history, Rung.FULL) for step in STEPS), None)


def propose(history: History, rung: Rung, *, is_early: bool = False) -> Iterator[Work]:
    """Yield the best experiment at a rung for each failure that is not explained yet.

    What is nearly clear comes first, and what does not become clear yields to the others. Limits that later trials
    narrow anyway come last, before them what is clear but for chance; both can wait while it is early.
    """
    of_failure, of_signature = _spent(history)
    known = Counter(_signatures_of_confirmed(history))
    expectation = Expectation(history)
    turns = sorted(history.atlas.suspicions, key=lambda each: _turn(each, of_signature))
    num_weighed = 0
    for suspicion in (each for each in turns if not _is_limit(each) and not each.is_clear) if is_early else turns:
        signature = suspicion.failed.signature
        times = CLEAR if suspicion.is_clear else 1
        is_spent = of_signature[signature] >= times * MOST_ALIKE[suspicion.is_likely_chance] * (1 + known[signature])
        if is_spent or of_failure[_stage(suspicion)] >= times * MOST_EACH:
            continue
        if num_weighed == MOST_WEIGHED:
            return
        num_weighed += 1
        at_probe = _at_a_probe(history, suspicion)
        if at_probe is not None and rung is Rung.PROBE:
            yield at_probe
        elif at_probe is None and rung is suspicion.failed.seen.rung and most_told(suspicion) >= LEAST_WORTH:
            work = _best(history, suspicion, rung, expectation)
            if work is not None:
                yield work


def _turn(suspicion: Suspicion, spent: Counter[str]) -> tuple[bool, bool, float]:
    share = suspicion.best.share * YIELDS ** spent[suspicion.failed.signature]
    return _is_limit(suspicion), suspicion.is_clear, -share


def _is_limit(suspicion: Suspicion) -> bool:
    """Return whether it is most likely about how much of something there is room for."""
    is_ordered = any(each.comparison is not Comparison.EQUAL for each in suspicion.best.conditions)
    return is_ordered and suspicion.failed.failure.reason in thresholds.LEFT_TO_LATER_TRIALS


def _spent(history: History) -> tuple[Counter[str], Counter[str]]:
    """Return how many experiments were run on each failure, and on all that look like it."""
    look_of, stages, signatures = tallies.looks(history), Counter[str](), Counter[str]()
    for stage, number in tallies.stages(history).items():
        if (look := look_of(_label_of(stage))) is not None:
            stages[stage] = number
            signatures[look] += number
    return stages, signatures


def _signatures_of_confirmed(history: History) -> list[str]:
    """Return what the oldest failure of each confirmed dead end of this study looks like."""
    look_of = tallies.looks(history)
    looks = (look_of(found.support[0]) for found in history.atlas.confirmed if found.support)
    return [look for look in looks if look is not None]


def _at_a_probe(history: History, suspicion: Suspicion) -> Work | None:
    """Return the probe that tells whether a launch's failure shows there too, or None: known, or not to be expected."""
    visible, failed = history.space.probe_parameters, suspicion.failed.seen
    if failed.rung in (Rung.RESOLVE, Rung.PROBE) or Rung.PROBE not in history.rungs or not visible:
        return None
    if not claims(Rung.PROBE, suspicion.failed.failure):
        return None
    likely = likely_causes(suspicion)  # chance left out: a probe costs little
    shown = (cause for cause in likely if all(each.parameter in visible for each in cause.conditions))
    if sum(cause.share for cause in shown) < LEAST_AT_PROBE * sum(cause.share for cause in likely):
        return None
    if _is_probed(history, failed.assignment):
        return None
    stage = _probe_stage_of(failed.label)
    about = suspicion.failed.failure.reason.value
    return history.admit(failed.assignment, Kind.PROBE, stage, base=history.base, about=about)


def _is_probed(history: History, point: Assignment) -> bool:
    """Return whether a probe ran that saw the same: what differs elsewhere makes no other probe."""
    return tuple(repr(point[name]) for name in history.space.probe_parameters) in tallies.probed_points(history)


def _best(history: History, suspicion: Suspicion, rung: Rung, expectation: Expectation) -> Work | None:
    """Return the launch worth most; where the cause is nearly clear, it is looked for in more contexts."""
    found = _best_of(history, suspicion, rung, expectation, experiment_points.CONTEXTS)
    if found is None and suspicion.best.share >= NEARLY_CLEAR:
        found = _best_of(history, suspicion, rung, expectation, experiment_points.MOST_CONTEXTS)
    return found


def _best_of(
    history: History, suspicion: Suspicion, rung: Rung, expectation: Expectation, num_contexts: int
) -> Work | None:
    about, kind = suspicion.failed.failure.reason.value, Kind.CONFIRM if rung is Rung.FULL else Kind.PROBE
    vain = _num_in_vain(history, suspicion)
    kept, key = _kept_rankings(history, suspicion), (rung, vain, num_contexts)
    if key not in kept:
        kept[key] = _ranked(history, suspicion, rung, expectation, vain, num_contexts)
    for point in kept[key]:
        if rung is Rung.PROBE and _is_probed(history, point):
            continue
        work = history.admit(point, kind, _stage(suspicion), base=history.base, about=about, rung=rung)
        if work is not None and work.resolved == point:
            return work
    return None


Rankings = dict[tuple[Rung, int, int], list[Assignment]]
"""Rung, experiments on a failure in vain, contexts → what is worth a look, most first."""


def _kept_rankings(history: History, suspicion: Suspicion) -> Rankings:
    """Return the rankings that hold as long as the same is suspected here and dead, and nothing more worked."""
    worked = (working.latest_working_at(history, rung) for rung in Rung)
    ends = ((len(found), next(iter(found), ""), next(reversed(found), "")) for found in worked)
    of = (
        suspicion,
        *hiding(history, suspicion),
        *(f"{found} {found.within}" for found in history.atlas.confirmed),  # what they forbid: not the very objects
        *itertools.chain.from_iterable(ends),
    )
    rankings: Rankings = history.memo.derived(f"experiments on {suspicion.failed.seen.label}", of, dict)
    return rankings


def _ranked(
    history: History, suspicion: Suspicion, rung: Rung, expectation: Expectation, vain: int, num_contexts: int
) -> list[Assignment]:
    ranked: dict[str, tuple[float, int, Assignment]] = {}
    for order, candidate in enumerate(experiment_points.candidates(history, suspicion, rung, num_contexts)):
        point = history.space.normalise(candidate, history.facts)
        key = str(point)
        if key not in ranked:
            ranked[key] = (-expectation.worth(suspicion, point, vain), order, point)
    rows = sorted(ranked.values(), key=lambda row: row[:2])
    return [point for worth, _, point in rows if -worth >= LEAST_WORTH]


def stage_of(label: str) -> str:
    """Return the stage of the experiments on a failure."""
    return f"{_ASKS[0]}{label}{_ASKS[1]}"


def _label_of(stage: str) -> str:
    """Return the label of the failure that a stage is about; of another stage, what is no label."""
    return stage.removeprefix(_ASKS[0]).removesuffix(_ASKS[1])


def stages_of(label: str) -> tuple[str, str]:
    """Return the stages of all that looks for the cause of a failure: experiments, and the probe of it."""
    return stage_of(label), _probe_stage_of(label)


def _probe_stage_of(label: str) -> str:
    return f"does a probe show what made {label} fail?"


def _stage(suspicion: Suspicion) -> str:
    return stage_of(suspicion.failed.seen.label)


def _num_in_vain(history: History, suspicion: Suspicion) -> int:
    """Return how many experiments on a failure ended by another reason, and told nothing."""
    stage, reason = _stage(suspicion), suspicion.failed.failure.reason
    ended = tallies.endings(history)
    return sum(number for (of, why), number in ended.items() if of == stage and why is not reason)


STEPS = (propose, thresholds.propose, audits.propose, thresholds.propose_late)
"""What the map asks for, most urgent first: what causes a failure, where it begins, whether it holds as widely."""
