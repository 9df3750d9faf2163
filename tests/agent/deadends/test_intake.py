"""Every closed trial is taken in once, in whatever order trials close."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.deadends.intake import Intake
from agent.outcome import Outcome, OutcomeKind
from agent.store.trial import Trial
from runners import Rung
from tests.support.planted import FACTS, small_space
from tests.support.strategies import numbered

PASSED = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
INTERRUPTED = Outcome(kind=OutcomeKind.INTERRUPTED, note="the agent that ran it is gone")
POINT = small_space().default_on(FACTS)


def closed(number: int) -> list[Trial]:
    """Return so many closed trials; every fifth was interrupted."""
    return numbered([(POINT, Rung.FULL, INTERRUPTED if index % 5 == 4 else PASSED) for index in range(number)])


def still_open(trial: Trial) -> Trial:
    """Return the trial before it was closed."""
    return trial.model_copy(update={"outcome": None, "record": None, "closed_at": None})


@given(st.permutations(range(12)), st.integers(1, 4))
def test_what_closes_in_any_order_is_handed_out_once(order: list[int], at_a_time: int) -> None:
    """Slots finish when they finish: an open trial may stand before closed ones for long."""
    trials, intake = closed(len(order)), Intake()
    seen: list[int] = []
    for end in range(0, len(order) + at_a_time, at_a_time):
        done = set(order[:end])
        stored = [trial if trial.number in done else still_open(trial) for trial in trials]
        seen += [trial.number for trial in intake.fresh(stored)]
    assert sorted(seen) == [trial.number for trial in trials if trial.counts]


def test_another_list_is_read_from_its_beginning() -> None:
    """A study that is charted anew without some of its trials: what was not handed out yet still is."""
    trials, intake = closed(4), Intake()
    assert len(intake.fresh(trials[:2])) == 2
    assert [trial.number for trial in intake.fresh(trials[1:])] == [2, 3]
