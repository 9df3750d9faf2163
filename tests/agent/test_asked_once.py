"""What an engine replaced without a word is not asked for again, neither as a probe nor as a launch."""

from __future__ import annotations

import pytest

from agent.deadends.atlas import Atlas
from agent.effects import observed_work
from agent.outcome import Outcome, OutcomeKind
from agent.propose.admission import CLOSED_ALREADY
from agent.propose.history import History
from agent.store.trial import Kind, Trial
from runners import EffectProof, RunRecord
from search_spaces import Assignment
from tests.support.planted import FACTS, PlantedRunner, record_of, small_space
from tests.support.simulated_study import LEASE, START, settings
from tests.support.stores import work

SPACE = small_space()
NAME = SPACE.probe_parameters[0]
ASKED, RAN = [value for value in SPACE.parameters[NAME].domain if value != SPACE.parameters[NAME].default][:2]
OTHER = "expert"
"""A parameter beside it: with true, the value that was asked for takes effect."""
CANDIDATE: Assignment = {**SPACE.default_on(FACTS), NAME: ASKED}


def closed(number: int, kind: Kind, *effects: EffectProof) -> Trial:
    """Return a trial that asked for one value and is closed as what its record proves."""
    outcome = Outcome(kind=OutcomeKind.MEASURED, value=100.0)
    record: RunRecord = record_of(outcome).model_copy(update={"effects": effects})
    asked = work(kind, **{NAME: ASKED, OTHER: HELD in effects})
    return Trial(
        study="study",
        number=number,
        work=observed_work(asked, record, SPACE, FACTS),
        cookie="c",
        lease=LEASE,
        started_at=START,
        closed_at=START,
        outcome=outcome,
        record=record,
    )


def history(trials: tuple[Trial, ...] = (), probes: tuple[Trial, ...] = ()) -> History:
    """Return a study of these trials."""
    return History(
        settings=settings(),
        space=SPACE,
        facts=FACTS,
        runner=PlantedRunner(),
        trials=trials,
        probes=probes,
        atlas=Atlas(),
        budget=40,
    )


REPLACED = EffectProof(parameter=NAME, requested=ASKED, effective=RAN, evidence="fell back")
HELD = EffectProof(parameter=NAME, requested=ASKED, effective=ASKED, evidence="took effect")


@pytest.mark.parametrize("kind", [Kind.PROBE, Kind.SEARCH])
@pytest.mark.parametrize("effects", [[(REPLACED,)], [(REPLACED,), (HELD,)]], ids=["always", "sometimes"])
def test_it_is_asked_for_once(kind: Kind, effects: list[tuple[EffectProof, ...]]) -> None:
    """Closed as another value, it would otherwise be proposed for ever; also where it took effect elsewhere."""
    trials = tuple(closed(number, kind, *each) for number, each in enumerate(effects))
    found = history(probes=trials) if kind is Kind.PROBE else history(trials=trials)
    assert found.admit(CANDIDATE, kind, "a step") is None
    assert found.ruled_out == {CLOSED_ALREADY: 1}


def test_what_a_probe_showed_is_no_proof_about_the_engine() -> None:
    """A launch of the same value is allowed, and asks for it."""
    admitted = history(probes=(closed(0, Kind.PROBE, REPLACED),)).admit(CANDIDATE, Kind.SEARCH, "a step")
    assert admitted is not None
    assert admitted.resolved[NAME] == ASKED


def test_another_probe_with_the_replaced_value_counts_as_what_runs() -> None:
    """Combinations with it are combinations with what runs."""
    found = history(probes=(closed(0, Kind.PROBE, REPLACED),))
    admitted = found.admit({**CANDIDATE, OTHER: True}, Kind.PROBE, "a step")
    assert admitted is not None
    assert (admitted.requested[NAME], admitted.resolved[NAME]) == (ASKED, RAN)
