"""A study in figures: which arm is the best, what it gains, and whether that can be told from noise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.deadends.atlas import Atlas
from agent.outcome import Failure, Outcome, OutcomeKind
from agent.propose.history import History
from agent.reasons import Policy, Reason
from agent.report import as_report
from agent.store.trial import Kind, Trial
from agent.summary import StudySummary, summarise
from runners import LogLine, Phase
from search_spaces import Assignment
from tests.support.planted import FACTS, Planted, PlantedRunner, record_of, small_space
from tests.support.simulated_study import LEASE, START, settings
from tests.support.stores import work

DEFAULT = small_space().default_on(FACTS)
BASELINE: Assignment = {**DEFAULT, "draft": 0}


def launch(value: float, kind: Kind = Kind.SEARCH, **changes: object) -> tuple[object, Outcome]:
    """Return a measured launch of the default with changes."""
    return work(kind, **changes), Outcome(kind=OutcomeKind.MEASURED, value=value)


def summary(launches: Sequence[tuple[object, Outcome]], probes: Sequence[Trial] = ()) -> StudySummary:
    """Return the summary of a study of these launches."""
    history = History(
        settings=settings(),
        space=small_space(),
        facts=FACTS,
        runner=PlantedRunner(),
        trials=tuple(trial(number, *each) for number, each in enumerate(launches)),
        probes=tuple(probes),
        atlas=Atlas(),
        budget=40,
    )
    return summarise(history, "study")


def trial(number: int, piece: object, outcome: Outcome) -> Trial:
    """Return a closed trial of one second."""
    return Trial.model_validate(
        {
            "study": "study",
            "number": number,
            "work": piece,
            "cookie": "c",
            "lease": LEASE,
            "started_at": START,
            "closed_at": START,
            "outcome": outcome,
            "record": record_of(outcome),
        }
    )


START_OF_ALL = [launch(100.0, Kind.DEFAULT), launch(50.0, Kind.BASELINE, draft=0)]


def test_the_gain_leaves_out_the_launch_for_which_the_best_was_chosen() -> None:
    """The first launch was chosen for being large; all launches of the baseline count."""
    repeats = [launch(value, Kind.REPEAT, draft=3) for value in (110.0, 112.0)]
    again = [launch(value, Kind.REPEAT, draft=0) for value in (52.0, 51.0)]
    found = summary([*START_OF_ALL, *again, launch(150.0, draft=3), *repeats])
    assert found.best is not None and found.best.assignment["draft"] == 3
    assert found.gain == pytest.approx((110.0 * 112.0) ** (1 / 2) / (50.0 * 51.0 * 52.0) ** (1 / 3))
    assert found.comparison is not None and found.comparison.low < found.gain < found.comparison.high
    assert (found.verdict, found.comparison.num_launches, found.comparison.num_baseline) == ("gain", 2, 3)


def test_an_arm_that_was_repeated_goes_before_one_that_was_lucky_once() -> None:
    """A single run crowns the luckiest."""
    repeats = [launch(105.0, Kind.REPEAT), launch(51.0, Kind.REPEAT, draft=0)]
    found = summary([*START_OF_ALL, *repeats, launch(300.0, draft=3)])
    assert found.best is not None and found.best.assignment == DEFAULT


def test_a_baseline_that_alone_was_repeated_does_not_win_by_it() -> None:
    """With room for a single repeat, everything else was launched once and still counts."""
    found = summary([*START_OF_ALL, launch(51.0, Kind.REPEAT, draft=0), launch(300.0, draft=3)])
    assert found.best is not None and found.best.assignment["draft"] == 3


def test_without_repeats_the_best_single_launch_is_shown_and_nothing_is_claimed() -> None:
    """A budget too small for repeats cannot separate anything."""
    found = summary(START_OF_ALL)
    assert found.best is not None and found.best.assignment == DEFAULT
    assert found.verdict == "not separable within the budget"


def test_arms_whose_intervals_overlap_are_not_separable() -> None:
    """The whole interval of the ratio has to lie above one."""
    found = summary(
        [*START_OF_ALL, launch(101.0, Kind.REPEAT, draft=0), launch(100.0, Kind.REPEAT)],
    )
    assert found.gain is not None and found.gain > 1
    assert found.verdict == "not separable within the budget"


def test_where_the_baseline_is_the_best_there_is_no_gain() -> None:
    """Speculation may lose."""
    found = summary([launch(10.0, Kind.DEFAULT), launch(50.0, Kind.BASELINE, draft=0)])
    assert found.best is not None and found.best.assignment == BASELINE
    assert (found.gain, found.verdict) == (pytest.approx(1.0), "no gain")


def test_without_a_baseline_there_is_no_gain_to_speak_of() -> None:
    """Neither a figure nor a verdict."""
    found = summary([launch(10.0, Kind.DEFAULT)])
    assert (found.gain, found.verdict) == (None, "")
    nothing = summary([])
    assert (nothing.best, nothing.gain, nothing.verdict) == (None, None, "")


def test_outcomes_spent_and_node_time_count_what_they_say() -> None:
    """Interrupted launches cost no budget, but they did take time."""
    failure = Outcome(kind=OutcomeKind.FAILED, failure=Planted((), Reason.GPU_OOM).failure)
    found = summary([*START_OF_ALL, (work(draft=1), failure), (work(draft=3), Outcome(kind=OutcomeKind.INTERRUPTED))])
    assert found.outcomes == {"measured": 2, "failed": 1, "slower": 0, "interrupted": 1}
    assert (found.spent, found.budget, found.node_s) == (3, 40, 4.0)


def test_changes_are_told_against_the_default() -> None:
    """In words, as options are written."""
    found = summary(START_OF_ALL)
    assert found.changes(DEFAULT) == "default"
    assert found.changes({**DEFAULT, "expert": True, "draft": 0}) == "draft=0 expert=true"


def test_a_failure_that_no_rule_recognises_is_the_next_rule_to_write() -> None:
    """An unknown reason must not vanish among the others: the report names the trial and its most telling line."""
    failure = Failure(
        reason=Reason.UNKNOWN,
        rule="none",
        confidence=0.0,
        phase=Phase.SERVE,
        decisive=LogLine(number=3, text="a `riddle`"),
        policy=Policy.RECORD_ONLY,
        cure="read the log",
    )
    unknown = (work(Kind.SEARCH, draft=3), Outcome(kind=OutcomeKind.FAILED, failure=failure))
    report = as_report(summary([*START_OF_ALL, unknown]), None)
    assert "## The next rules to write\n\n- #2: `a 'riddle'`" in report
    assert "next rules" not in as_report(summary(START_OF_ALL), None)
