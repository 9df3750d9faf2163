"""The last share of the budget: who is repeated, in which order, and who may be declared in the end."""

from __future__ import annotations

import math
import random

import pytest

from agent.outcome import Outcome, OutcomeKind
from agent.propose.baselines import repeats
from agent.propose.lengths import STAGE
from agent.propose.standing import Standing
from agent.reasons import Reason
from agent.schedule import family
from agent.store.trial import Kind, Trial
from agent.summary import summarise
from runners import Measurement
from search_spaces import Assignment, Scalar
from tests.support.planted import Planted, Truth, record_of, small_space
from tests.support.simulated_study import SimulatedStudy

SPACE = small_space()
TRUTH = Truth(SPACE)
EFFECTS: dict[tuple[str, Scalar], float] = {
    ("backend", "b"): 1.08,
    ("backend", "c"): 1.15,
    ("backend", "d"): 0.9,
    ("draft", 0): 0.8,
    ("draft", 2): 1.1,
    ("draft", 3): 1.15,
    ("graph", 0): 0.8,
    ("graph", 8): 1.06,
    ("expert", True): 0.95,
}


def worth(assignment: Assignment) -> float:
    """Return the true value: each parameter has an effect of its own, as on most engines, and one pair together."""
    effects = [EFFECTS[name, value] for name, value in assignment.items() if (name, value) in EFFECTS]
    together = 1.1 if assignment["backend"] == "c" and assignment["expert"] else 1.0
    return 100.0 * math.prod(effects) * together


def noisy(seed: int, sd: float, budget: int = 40) -> SimulatedStudy:
    """Return a study in which launches differ by this much; the noise hangs on the seed and the work."""

    def judge(trial: Trial, before: int) -> Outcome:
        draw = random.Random(f"{seed}/{trial.work.identity}/{before}").gauss(0.0, sd)
        return Outcome(kind=OutcomeKind.MEASURED, value=worth(trial.work.resolved) * math.exp(draw))

    return SimulatedStudy(TRUTH, budget, seed, judge=judge)


def run(seed: int, sd: float, budget: int = 40) -> SimulatedStudy:
    """Run such a study."""
    study = noisy(seed, sd, budget)
    study.run()
    return study


@pytest.fixture(scope="module")
def unsteady() -> SimulatedStudy:
    """A study with noise of 10 %."""
    return run(1, 0.10)


def test_the_leader_its_rivals_and_the_baseline_take_turns(unsteady: SimulatedStudy) -> None:
    """Repeats of one assignment do not stand in a block, where a warm hour would favour it."""
    history = unsteady.history()
    last = [trial.work for trial in unsteady.trials if trial.work.stage == "contender"]
    keys = [work.key for work in last]
    assert len(set(keys)) >= 2
    assert len(history.values[history.baseline_key or ""]) >= 3
    longest = max(sum(1 for _ in run) for run in _runs(keys))
    assert longest <= 2
    assert all(work.kind is Kind.REPEAT for work in last)


def _runs(keys: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for key in keys:
        if not found or found[-1][-1] != key:
            found.append([])
        found[-1].append(key)
    return found


def test_the_order_of_repeats_hangs_on_the_seed_and_on_nothing_else(unsteady: SimulatedStudy) -> None:
    """A resumed study repeats in the same order."""
    again = run(1, 0.10)
    assert [trial.work.identity for trial in again.trials] == [trial.work.identity for trial in unsteady.trials]


def test_the_winner_was_repeated_and_its_interval_leaves_out_its_first_launch(unsteady: SimulatedStudy) -> None:
    """What it was chosen for does not count."""
    history = unsteady.history()
    winner = Standing(history).winner
    assert winner is not None and winner != history.baseline_key
    found = summarise(history, "study").comparison
    assert found is not None and found.num_launches == len(history.values[winner]) - 1 >= 2
    assert found.num_baseline == len(history.values[history.baseline_key or ""]) >= 3


def test_the_baseline_runs_again_at_once_and_half_way() -> None:
    """For its agreement with itself, and for drift; a budget without room for repeats has none."""
    study = run(2, 0.05)
    baseline = study.history().baseline_key
    at = [trial.number for trial in study.trials if trial.work.key == baseline]
    assert at[:2] == [at[0], at[0] + 1] and at[2] in (20, 21)
    small = run(2, 0.05, budget=6)
    assert not repeats(small.history(), small.history().baseline_key)[1:]


def test_the_lengths_around_the_winner_are_measured(unsteady: SimulatedStudy) -> None:
    """None included, whatever the search had looked at; with a small part of the budget."""
    history = unsteady.history()
    winner = Standing(history).winner
    assert winner is not None
    members = family(SPACE, history.facts, history.measured[winner], list(history.measured.values()))
    spent = sum(trial.work.stage == STAGE for trial in unsteady.trials)
    assert spent <= 2
    assert 0 in members and len(members) >= 2


def _declared(study: SimulatedStudy) -> Assignment | None:
    history = study.history()
    winner = Standing(history).winner
    return None if winner is None else history.measured[winner]


def _failed(study: SimulatedStudy, reason: Reason, times: int) -> SimulatedStudy:
    """Return the study with further launches of its winner that failed."""
    history = study.history()
    winner = Standing(history).winner
    first = next(trial for trial in study.trials if trial.work.key == winner)
    failure = Planted((), reason, has_blames=False).failure
    outcome = Outcome(kind=OutcomeKind.FAILED, failure=failure)
    more = [
        first.model_copy(
            update={
                "number": len(study.trials) + index,
                "work": first.work.again(Kind.REPEAT, 50 + index, "contender"),
                "outcome": outcome,
                "record": record_of(outcome),
            }
        )
        for index in range(times)
    ]
    study.trials.extend(more)
    return study


@pytest.mark.parametrize(("reason", "times"), [(Reason.WRONG_OUTPUT, 1), (Reason.SERVER_HANG, 9)])
def test_what_put_out_something_wrong_or_failed_as_often_as_not_does_not_win(reason: Reason, times: int) -> None:
    """However fast it was when it worked."""
    study = run(3, 0.02, budget=20)
    before = _declared(study)
    after = _declared(_failed(study, reason, times))
    assert before is not None and after is not None and after != before


def test_a_single_failure_of_another_kind_takes_nothing_away() -> None:
    """Flaky is not dead."""
    study = run(3, 0.02, budget=20)
    before = _declared(study)
    assert _declared(_failed(study, Reason.SERVER_HANG, 1)) == before


def test_output_of_a_launch_before_the_baseline_is_checked_afterwards() -> None:
    """The default runs first, when there is nothing to compare with."""
    study = run(3, 0.0, budget=20)
    first = next(trial for trial in study.trials if trial.work.kind is Kind.DEFAULT)
    garbage = Measurement(levels=(), outputs=((0, 0, 0, 0),))
    for trial in study.trials:
        if trial.record is not None and trial.is_measured:
            outputs = garbage if trial.number == first.number else Measurement(levels=(), outputs=((1, 2, 3, 4),))
            record = trial.record.model_copy(update={"measurement": outputs})
            study.trials[trial.number] = trial.model_copy(update={"record": record})
    assert first.work.key not in Standing(study.history()).reliable
