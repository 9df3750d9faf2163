"""What runs now is not launched beside itself, and counts as measured as expected."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from agent.propose.history import History
from agent.propose.improve import Improvement
from agent.propose.order import Launches, Proposal, propose
from agent.store.trial import Kind, Trial, Work
from runners import EffectProof, Rung, RunRecord
from search_spaces import load_node
from tests.agent.propose.test_improve import history_before_an_improvement, with_one_in_flight
from tests.support.modelled_study import ModelledStudy
from tests.support.simulated_study import LEASE, START


@pytest.fixture(scope="module")
def history() -> History:
    """A study of a modelled node when the next launch is one that is expected to improve."""
    return history_before_an_improvement()


def work_of(history: History, kind: Kind, rung: Rung = Rung.FULL, repeat: int = 0) -> Work:
    """Return the incumbent as a piece of work."""
    assert history.incumbent is not None
    return Work(
        kind=kind, rung=rung, requested=history.incumbent, resolved=history.incumbent, stage="test", repeat=repeat
    )


def test_a_repeat_waits_for_the_launch_that_it_repeats(history: History) -> None:
    """They are different pieces of work, and would share what disturbs the node at that moment."""
    first, second = (work_of(history, Kind.REPEAT, repeat=number) for number in (0, 1))
    assert not history.in_flight.holds(second)
    later = with_one_in_flight(history, first)
    assert later.in_flight.holds(second) and later.in_flight.number == 1
    assert later.admit(second.resolved, Kind.CONFIRM, "test") is None and later.ruled_out["running now"] == 1
    assert not later.in_flight.holds(work_of(history, Kind.PROBE, Rung.DUMMY)), "a cheaper rung may be asked"


def test_what_another_launch_showed_meanwhile_counts_for_what_runs(history: History) -> None:
    """A value that was seen to be replaced makes two assignments the same launch, although one began before."""
    assert history.incumbent is not None
    name = next(name for name, each in history.space.parameters.items() if len(each.domain) > 1 and not each.locked)
    domain = [value for value in history.space.parameters[name].domain if value != history.incumbent[name]]
    other = history.space.normalise({**history.incumbent, name: domain[0]}, history.facts)
    running = with_one_in_flight(history, work_of(history, Kind.SEARCH).model_copy(update={"resolved": other}))
    assert not running.in_flight.holds(work_of(history, Kind.REPEAT))
    measured = next(trial for trial in history.trials if trial.is_measured and isinstance(trial.record, RunRecord))
    proof = EffectProof(parameter=name, requested=domain[0], effective=history.incumbent[name], evidence="its log")
    assert measured.record is not None
    asked = measured.work.model_copy(update={"requested": {**measured.work.requested, name: domain[0]}})
    seen = measured.model_copy(
        update={"work": asked, "record": measured.record.model_copy(update={"effects": (proof,)})}
    )
    later = replace(running, trials=(seen, *running.trials))
    assert later.in_flight.holds(work_of(history, Kind.REPEAT))


def test_what_a_cheaper_rung_is_asked_about_is_expected_too(history: History) -> None:
    """It is launched next: another slot tries something else."""
    best = next(point for point in Improvement(history).ranked())
    work = Work(kind=Kind.PROBE, rung=Rung.RESOLVE, requested=best, resolved=best, stage="test")
    check = Trial(study="study/probes", number=0, work=work, cookie="c", lease=LEASE, started_at=START)
    asked = replace(history, checks=(*history.checks, check))
    assert asked.in_flight.pending == [best]
    neighbours = [history.space.normalise(each, history.facts) for each in history.space.single_changes(best)]
    before, after = Improvement(history), Improvement(asked)
    points = {repr(point): point for point in neighbours}
    before._look_at(points)
    after._look_at(points)
    assert sum(after._promises.values()) < sum(before._promises.values())


@pytest.mark.parametrize(("node", "slots"), [("generated-small-1", 4), ("pcie2-24gib-vllm", 2)])
def test_with_several_slots_a_study_ends_with_its_budget_spent(node: str, slots: int) -> None:
    """Whichever launch ends first; nothing runs beside itself, and the last share still repeats the best."""
    rng = random.Random(slots)
    study = ModelledStudy(node=load_node(node), budget=24, slots=slots)

    def check(history: History, proposal: Proposal) -> None:
        open_ = (trial for trial in history.launches if not trial.is_closed)
        running = Counter(history.in_flight.key_of(trial.work.resolved) for trial in open_)
        assert max(running.values(), default=1) == 1
        rng.shuffle(study._in_flight)
        if isinstance(proposal, Launches):
            assert propose(replace(history), study._sampler) == proposal

    study.on_proposal = check
    study.run()
    history = study.history()
    assert history.spent == 24
    assert sum(trial.work.kind is Kind.REPEAT for trial in history.launches) >= 2
