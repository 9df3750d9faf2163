"""What the trials of a study add up to, each sum taken over what is new only (`memo`)."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Set
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from agent.effects import Rewrites, replaced_in, taken_in
from agent.objectives import objectives
from agent.propose import tallies
from agent.propose.parts import folded
from agent.reasons import TWICE, Policy
from agent.store.trial import Kind, Trial, trial_label
from runners import EffectProof
from search_spaces import Assignment, Scalar

if TYPE_CHECKING:
    from agent.propose.history import History


@dataclass(frozen=True, slots=True)
class Names(Container[str]):
    """Names of launches, those of closed ones apart: they are thousands, and are not copied for each that runs."""

    closed: Set[str]
    running: Set[str]

    def __contains__(self, name: object) -> bool:
        return name in self.closed or name in self.running


def launches(history: History) -> list[Trial]:
    """Return the launches at the top rung that count, with those in flight."""
    return history.memo.fold("launches", history.trials, list, _add_launch)


def num_confirmations(history: History) -> int:
    """Return how many of them are second launches that a failure asked for."""
    return num_of_kind(history, Kind.CONFIRM)


def num_of_kind(history: History, kind: Kind) -> int:
    """Return how many of them are of a kind."""
    return int(history.memo.fold("kinds", history.trials, Counter, _add_kind)[kind])


def identities(history: History) -> Names:
    """Return the identities of the launches that are closed or in flight, as asked and as ran."""
    return _names(history, "identities", _add_identity)


def checked(history: History) -> set[str]:
    """Return the identities of the checks that are closed or in flight, as asked and as ran."""
    return history.memo.fold("checked", history.checks, set, _add_identity)


def probed(history: History, *, as_asked: bool = False) -> set[str]:
    """Return the identities of the probes that are closed or in flight, as ran, or as asked too."""
    if as_asked:
        return history.memo.fold("probed or asked", history.probes, set, _add_identity)
    return history.memo.fold("probed", history.probes, set, _add_probed)


def interruptions(history: History) -> Counter[str]:
    """Return how often each identity ended by the harness's own fault."""
    return sum(folded(history, "interruptions", Counter, _add_fault), Counter())


def weighed_values(history: History, index: int | None) -> dict[str, list[float]]:
    """Return the same for studies of several goals, weighed as for the launch of that number, or all alike."""
    found: dict[str, list[float]] = defaultdict(list)
    kept = [trial for trial in history.trials if trial.is_measured and trial.outcome and trial.outcome.value]
    for trial, value in zip(kept, objectives(kept, history.settings, index), strict=True):
        found[trial.work.key].append(value)
    return found


def num_closed(history: History) -> int:
    """Return how many launches that count are closed."""
    counted = history.memo.fold("closed", history.trials, Counter, _add_closed)
    return int(counted[True])


def launched_keys(history: History) -> Names:
    """Return the keys of all launches that count or are in flight."""
    return _names(history, "launched", _add_key)


def _names(history: History, name: str, add: Callable[[set[str], Trial], None]) -> Names:
    running: set[str] = set()
    for trial in tallies.open_trials(history)[0]:
        add(running, trial)
    return Names(history.memo.fold(name, history.trials, set, add, closed_only=True), running)


def num_launches_in(history: History, stage: str) -> int:
    """Return how many launches of a stage count or are in flight."""
    return int(history.memo.fold("launches by stage", history.trials, Counter, _add_stage)[stage])


def failed_launches(history: History) -> Counter[str]:
    """Return key → how many launches of an assignment failed."""
    return history.memo.fold("failed launches", history.trials, Counter, _add_failed, closed_only=True)


def repeats(history: History, key: str | None) -> list[Trial]:
    """Return an assignment's repeats, those that failed or are in flight included."""
    found: dict[str, list[Trial]] = history.memo.fold("repeats", history.trials, dict, _add_repeat)
    return found.get(key or "", [])


def first_measured(history: History, key: str) -> Trial:
    """Return the first launch that measured an assignment."""
    return history.memo.fold("first measured", history.trials, dict, _add_first, closed_only=True)[key]


def launch_times(history: History) -> list[float]:
    """Return the seconds of the measured launches, in ascending order."""
    return history.memo.fold("times", history.trials, list, _add_time, closed_only=True)


def stopping(history: History) -> list[Trial]:
    """Return the trials that failed by what stops a study, those of the launches first."""
    return [trial for found in folded(history, "stopping", list, _add_stopping) for trial in found]


def failed_once(history: History) -> dict[str, Trial]:
    """Return the failed launches whose failure's policy may ask for a second one, by their labels, in order."""
    return history.memo.fold("failed once", history.trials, dict, _add_failed_once, closed_only=True)


def best_rates(history: History) -> dict[int, float]:
    """Return concurrency → the highest rate that a launch was measured with, in output tokens per second."""
    return history.memo.fold("best rates", history.trials, dict, _add_rates)


def measured(history: History) -> dict[str, Assignment]:
    """Return key → resolved assignment of everything that was measured, in order of first measurement."""
    return history.memo.fold("measured", history.trials, dict, _add_measured, closed_only=True)


def stopped_early(history: History) -> dict[str, tuple[Assignment, float]]:
    """Return key → resolved assignment and partial value of everything that was ever stopped early as slower."""
    return history.memo.fold("slower", history.trials, dict, _add_slower, closed_only=True)


def silent_rewrites(history: History, *, with_probes: bool) -> Rewrites:
    """Return the values that the engine was seen to replace and never seen to take."""
    parts = {"trials": history.trials, "checks": history.checks}
    parts |= {"probes": history.probes} if with_probes else {}
    found: dict[tuple[str, Scalar], EffectProof] = {}
    taken: set[tuple[str, Scalar]] = set()

    def add(known: dict[tuple[str, Scalar], EffectProof], trial: Trial) -> None:
        known |= replaced_in(trial, history.space)

    for name, part in parts.items():
        found |= history.memo.fold(f"replaced {name}", part, dict, add)
        taken |= history.memo.fold(f"taken {name}", part, set, _add_taken)
    return {key: proof for key, proof in found.items() if key not in taken}


def latest_stopped_early(history: History, number: int) -> list[tuple[Assignment, float]]:
    """Return the latest of these that were never measured since, so many of them, oldest first."""
    stopped = stopped_early(history)
    found = (stopped[key] for key in reversed(stopped) if key not in history.measured)
    return list(islice(found, number))[::-1]


def _add_launch(found: list[Trial], trial: Trial) -> None:
    if trial.counts or not trial.is_closed:
        found.append(trial)


def _add_kind(found: Counter[Kind], trial: Trial) -> None:
    if trial.counts or not trial.is_closed:
        found[trial.work.kind] += 1


def _add_closed(found: Counter[bool], trial: Trial) -> None:
    found[trial.counts] += 1


def _add_key(found: set[str], trial: Trial) -> None:
    if trial.counts or not trial.is_closed:
        found.add(trial.work.key)


def _add_stage(found: Counter[str], trial: Trial) -> None:
    if trial.counts or not trial.is_closed:
        found[trial.work.stage] += 1


def _add_failed(found: Counter[str], trial: Trial) -> None:
    if trial.is_failed:
        found[trial.work.key] += 1


def _add_repeat(found: dict[str, list[Trial]], trial: Trial) -> None:
    if trial.work.kind is Kind.REPEAT and (trial.counts or not trial.is_closed):
        found[trial.work.key] = [*found.get(trial.work.key, ()), trial]


def _add_first(found: dict[str, Trial], trial: Trial) -> None:
    if trial.is_measured:
        found.setdefault(trial.work.key, trial)


def _add_time(found: list[float], trial: Trial) -> None:
    if trial.is_measured and trial.record is not None:
        insort(found, trial.record.wall_s)


def _add_stopping(found: list[Trial], trial: Trial) -> None:
    failure = trial.outcome.failure if trial.outcome is not None else None
    if failure is not None and failure.policy is Policy.STOP_STUDY:
        found.append(trial)


def _add_failed_once(found: dict[str, Trial], trial: Trial) -> None:
    failure = trial.outcome.failure if trial.is_failed and trial.outcome is not None else None
    if failure is not None and failure.policy in TWICE and trial.work.kind is not Kind.CONFIRM:
        found[trial_label(trial)] = trial


def _add_rates(found: dict[int, float], trial: Trial) -> None:
    measurement = trial.record.measurement if trial.is_measured and trial.record else None
    for level in measurement.levels if measurement else ():
        found[level.concurrency] = max(found.get(level.concurrency, 0.0), level.output_tok_per_s)


def _add_identity(found: set[str], trial: Trial) -> None:
    if trial.counts or not trial.is_closed:
        found.update((trial.work.identity, trial.work.asked_identity))


def _add_probed(found: set[str], trial: Trial) -> None:
    if trial.counts or not trial.is_closed:
        found.add(trial.work.identity)


def _add_fault(found: Counter[str], trial: Trial) -> None:
    if trial.is_our_fault:
        found[trial.work.identity] += 1


def _add_measured(found: dict[str, Assignment], trial: Trial) -> None:
    if trial.is_measured:
        found[trial.work.key] = trial.work.resolved


def _add_slower(found: dict[str, tuple[Assignment, float]], trial: Trial) -> None:
    if trial.is_slower and trial.outcome is not None and trial.outcome.value:
        found[trial.work.key] = (trial.work.resolved, trial.outcome.value)


def _add_taken(found: set[tuple[str, Scalar]], trial: Trial) -> None:
    found |= taken_in(trial)
