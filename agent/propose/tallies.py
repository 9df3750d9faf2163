"""What the map's experiments, the rungs and the slots ask of the trials, added up over what is new only (`memo`)."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.deadends.observation import trial_label
from agent.deadends.signature import signature_of
from agent.propose.parts import folded
from agent.reasons import TWICE, Reason
from agent.store.trial import Kind, Trial
from runners import Rung
from search_spaces import Assignment, assignment_key

if TYPE_CHECKING:
    from agent.propose.history import History


def num_launches(history: History) -> int:
    """Return how many launches at the top rung count, with those in flight."""
    return int(history.memo.fold("num launches", history.trials, Counter, _add_launch)[True])


def open_trials(history: History) -> list[list[Trial]]:
    """Return what runs now: launches, probes, checks."""
    return folded(history, "open", list, _add_open)


def open_questions(history: History) -> tuple[str, ...]:
    """Return the labels of what runs now and may say more than whether a launch works: probes, and experiments."""
    launches, probes, checks = open_trials(history)
    asked = (*(trial for trial in (*launches, *checks) if trial.work.about), *probes)
    return tuple(map(trial_label, asked))


def stages(history: History) -> Counter[str]:
    """Return stage → experiments that were run or are in flight in it."""
    return sum(folded(history, "stages", Counter, _add_stage), Counter())


def in_stage(history: History, stage: str) -> list[Trial]:
    """Return the experiments of a stage that count or are in flight."""
    launches, probes, _ = folded(history, "experiments", dict, _add_experiment)
    return [*launches.get(stage, ()), *probes.get(stage, ())]


def looks(history: History) -> Callable[[str], str | None]:
    """Return what maps the label of a failed trial to what its failure looks like; None for any other label."""
    parts = folded(history, "looks", dict, _add_look, closed_only=True)
    return lambda label: next((part[label] for part in parts if label in part), None)


def endings(history: History) -> Counter[tuple[str, Reason]]:
    """Return (stage, reason) → how many trials of a stage failed for a reason."""
    return sum(folded(history, "endings", Counter, _add_ending), Counter())


def of_labels(history: History, labels: tuple[str, ...]) -> list[Trial]:
    """Return the launches and probes with these labels, launches first, each in their order."""
    launches, probes, _ = folded(history, "labels", dict, _add_label)
    found = [part[label] for part in (launches, probes) for label in labels if label in part]
    return sorted(found, key=lambda trial: (trial.work.kind is Kind.PROBE, trial.number))


def probes_about(history: History, about: str) -> list[Trial]:
    """Return the probes about a dead end that are closed or in flight."""
    found: dict[str, list[Trial]] = history.memo.fold("about", history.probes, dict, _add_about)
    return found.get(about, [])


def probed_points(history: History) -> set[tuple[str, ...]]:
    """Return what the closed probes could see of their assignments."""
    names = history.space.probe_parameters

    def add(found: set[tuple[str, ...]], trial: Trial) -> None:
        if trial.counts:
            found.add(tuple(repr(trial.work.resolved[name]) for name in names))

    return history.memo.fold("probed points", history.probes, set, add)


def durations(history: History, rung: Rung) -> list[float]:
    """Return the seconds of the trials of a rung below the top that said something, in ascending order."""

    def add(found: list[float], trial: Trial) -> None:
        if trial.work.rung is rung and trial.counts and not trial.is_not_probed and trial.record:
            insort(found, trial.record.wall_s)

    _, probes, checks = folded(history, f"durations at {rung.value}", list, add, closed_only=True)
    return checks if not probes else sorted((*probes, *checks)) if checks else probes


def num_checks(history: History, rung: Rung) -> int:
    """Return how many trials of a rung below the top are closed or in flight."""
    _, probes, checks = folded(history, "rungs", Counter, _add_rung)
    return int(probes[rung] + checks[rung])


def num_not_probed(history: History) -> int:
    """Return how many probes could not look at what they were asked about."""
    return int(history.memo.fold("not probed", history.probes, Counter, _add_not_probed)[True])


def twice(history: History, part: str) -> list[Trial]:
    """Return the failed trials of a list whose failure's policy may ask for a second one; none of them is one."""
    return history.memo.fold(f"twice {part}", getattr(history, part), list, _add_twice)


def starting_points(history: History) -> list[Trial]:
    """Return the launches of the engine's default, of safer settings and of the baseline, in order."""
    return history.memo.fold("starts", history.trials, list, _add_start)


def of_default(history: History) -> list[Trial]:
    """Return the launches that count of the engine's default, whatever they were launched for."""
    default = history.default

    def add(found: list[Trial], trial: Trial) -> None:
        if trial.counts and trial.work.requested == default:
            found.append(trial)

    return history.memo.fold("of default", history.trials, list, add)


def with_key(history: History, key: str | None) -> list[Trial]:
    """Return the launches of the assignment with this key, in order, whatever came of them; of none, nothing."""
    closed: dict[str, list[Trial]] = history.memo.fold("by key", history.trials, dict, _add_by_key, closed_only=True)
    running = (trial for trial in open_trials(history)[0] if trial.work.key == key)
    return sorted((*closed.get(key or "", ()), *running), key=lambda trial: trial.number)


def launches_of(history: History, assignment: Assignment) -> list[Trial]:
    """Return the launches of an assignment, in order."""
    return [trial for trial in with_key(history, assignment_key(assignment)) if trial.work.resolved == assignment]


def baselines(history: History) -> list[Trial]:
    """Return the launches of every assignment that was measured as the baseline, whatever they were for, in order."""
    keys = history.memo.fold("baselines", history.trials, dict, _add_baseline)
    launches = (trial for key in keys for trial in with_key(history, key))
    return sorted(launches, key=lambda trial: trial.number)


def first_that_works(history: History) -> Trial | None:
    """Return the first measured launch."""
    found: list[Trial] = history.memo.fold("first that works", history.trials, list, _add_first)
    return found[0] if found else None


def _add_open(found: list[Trial], trial: Trial) -> None:
    if not trial.is_closed:
        found.append(trial)


def _add_launch(found: Counter[bool], trial: Trial) -> None:
    found[_runs_or_counts(trial)] += 1


def _runs_or_counts(trial: Trial) -> bool:
    return trial.counts or not trial.is_closed


def _add_stage(found: Counter[str], trial: Trial) -> None:
    if trial.work.about and _runs_or_counts(trial):
        found[trial.work.stage] += 1


def _add_experiment(found: dict[str, list[Trial]], trial: Trial) -> None:
    if trial.work.about and _runs_or_counts(trial):
        found[trial.work.stage] = [*found.get(trial.work.stage, ()), trial]


def _add_look(found: dict[str, str], trial: Trial) -> None:
    if trial.counts and trial.outcome is not None and trial.outcome.failure is not None:
        found[trial_label(trial)] = signature_of(trial.outcome.failure)


def _add_ending(found: Counter[tuple[str, Reason]], trial: Trial) -> None:
    is_launch = trial.work.kind is not Kind.PROBE
    failure = trial.outcome.failure if trial.outcome is not None else None
    if failure is not None and (trial.counts or not is_launch):
        found[trial.work.stage, failure.reason] += 1


def _add_label(found: dict[str, Trial], trial: Trial) -> None:
    found[trial_label(trial)] = trial


def _add_about(found: dict[str, list[Trial]], trial: Trial) -> None:
    if trial.work.about and _runs_or_counts(trial):
        found[trial.work.about] = [*found.get(trial.work.about, ()), trial]


def _add_rung(found: Counter[Rung], trial: Trial) -> None:
    found[trial.work.rung] += _runs_or_counts(trial)


def _add_not_probed(found: Counter[bool], trial: Trial) -> None:
    found[trial.is_not_probed] += 1


def _add_twice(found: list[Trial], trial: Trial) -> None:
    failure = trial.outcome.failure if trial.is_failed and trial.outcome is not None else None
    if failure is not None and failure.policy in TWICE and trial.work.kind is not Kind.CONFIRM:
        found.append(trial)


def _add_start(found: list[Trial], trial: Trial) -> None:
    if trial.work.kind in (Kind.DEFAULT, Kind.BASELINE):
        found.append(trial)


def _add_by_key(found: dict[str, list[Trial]], trial: Trial) -> None:
    found[trial.work.key] = [*found.get(trial.work.key, ()), trial]


def _add_baseline(found: dict[str, None], trial: Trial) -> None:
    if trial.work.kind is Kind.BASELINE and trial.is_measured:
        found[trial.work.key] = None


def _add_first(found: list[Trial], trial: Trial) -> None:
    if trial.is_measured and not found:
        found.append(trial)
