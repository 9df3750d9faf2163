"""What ran is what was measured: silent fallbacks of an engine become rewrites."""

from __future__ import annotations

from agent.effects import (
    OBSERVED,
    contradictions,
    observed_work,
    of_active_parameters,
    rewritten,
    silent_rewrites,
    unproven,
)
from agent.outcome import Outcome, OutcomeKind
from agent.store.trial import Kind, Trial, Work
from runners import EffectProof, Exit, Phase, Rung, RunRecord
from search_spaces import Scalar, load_space
from tests.support.simulated_study import LEASE, START

SPACE = load_space("vllm")
FACTS = {"device": "cuda"}
CUSTOM = SPACE.normalise({**SPACE.default_on(FACTS), "allreduce": "custom"}, FACTS)
FELL_BACK = EffectProof(parameter="allreduce", requested="custom", effective="nccl", evidence="line 7: disabled")
HELD = EffectProof(parameter="allreduce", requested="custom", effective="custom", evidence="line 7: Using ['CUSTOM']")


def record_with(*effects: EffectProof) -> RunRecord:
    return RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, effects=effects)


def work_of(assignment: dict[str, Scalar]) -> Work:
    return Work(kind=Kind.SEARCH, rung=Rung.FULL, requested=assignment, resolved=assignment)


def trial_with(number: int, *effects: EffectProof) -> Trial:
    return Trial(
        study="s",
        number=number,
        work=work_of(dict(CUSTOM)),
        cookie="c",
        lease=LEASE,
        started_at=START,
        record=record_with(*effects),
    )


def test_a_silent_fallback_is_closed_as_what_ran() -> None:
    work = work_of(dict(CUSTOM))
    seen = observed_work(work, record_with(FELL_BACK), SPACE, FACTS)
    assert (seen.requested["allreduce"], seen.resolved["allreduce"]) == ("custom", "nccl")
    assert seen.key != work.key
    assert seen.rewrites[-1].why == OBSERVED + "line 7: disabled"


def test_a_value_that_took_effect_changes_nothing() -> None:
    work = work_of(dict(CUSTOM))
    assert observed_work(work, record_with(HELD), SPACE, FACTS) is work


def test_what_an_engine_says_of_a_parameter_without_a_meaning_is_no_replacement() -> None:
    """Without speculation it reports no draft length."""
    silent = EffectProof(parameter="num_speculative_tokens", requested=3, effective="none", evidence="line 1")
    off = SPACE.normalise({**CUSTOM, **SPACE.baseline}, FACTS)
    record = of_active_parameters(record_with(silent, HELD), off, SPACE, FACTS)
    assert record.effects == (HELD,)
    on = {**off, "speculative_method": "ngram"}
    assert of_active_parameters(record_with(silent, HELD), on, SPACE, FACTS).effects == (silent, HELD)


def test_a_value_without_a_name_in_the_space_stays_in_the_record() -> None:
    odd = FELL_BACK.model_copy(update={"effective": "quick_reduce"})
    work = work_of(dict(CUSTOM))
    assert observed_work(work, record_with(odd), SPACE, FACTS) is work
    assert silent_rewrites([trial_with(0, odd)], SPACE) == {}


def test_what_was_seen_to_be_replaced_is_not_asked_for_again() -> None:
    rewrites = silent_rewrites([trial_with(0, FELL_BACK)], SPACE)
    assignment, found = rewritten(CUSTOM, rewrites)
    assert assignment["allreduce"] == "nccl"
    assert [(each.requested, each.resolved) for each in found] == [("custom", "nccl")]


def test_one_launch_in_which_it_took_effect_clears_it() -> None:
    assert silent_rewrites([trial_with(0, FELL_BACK), trial_with(1, HELD)], SPACE) == {}


def test_a_contradiction_is_told_once_whether_or_not_the_space_has_a_name_for_it() -> None:
    """A rewrite that closed the trial as another one, and a proof that stays in the record alone."""
    rewritten_work = observed_work(work_of(dict(CUSTOM)), record_with(FELL_BACK), SPACE, FACTS)
    closed = trial_with(0, FELL_BACK).model_copy(update={"work": rewritten_work})
    assert [each.resolved for each in contradictions(closed)] == ["nccl"]
    odd = FELL_BACK.model_copy(update={"effective": "quick_reduce"})
    assert [each.resolved for each in contradictions(trial_with(0, odd))] == ["quick_reduce"]
    assert contradictions(trial_with(0, HELD)) == ()


def test_a_parameter_that_was_varied_and_never_proven_is_named() -> None:
    """What no launch varied needs no proof; what one launch proved is proven."""
    measured = {"outcome": Outcome(kind=OutcomeKind.MEASURED, value=1.0), "closed_at": START}
    tuned = {**CUSTOM, "max_num_seqs": 8}
    trials = [trial_with(0).model_copy(update=measured)]
    trials += [trial_with(1).model_copy(update={**measured, "work": work_of(tuned)})]
    assert unproven(trials, SPACE) == {"max_num_seqs": "no launch showed the proof"}
    bare = SPACE.parameters["max_num_seqs"].model_copy(update={"proof": None})
    without = SPACE.model_copy(update={"parameters": {**SPACE.parameters, "max_num_seqs": bare}})
    assert unproven(trials, without) == {"max_num_seqs": "the space knows no proof"}
    seen = EffectProof(parameter="max_num_seqs", requested=8, effective=8, evidence="line 1")
    proof = {"record": record_with(seen)}
    assert unproven([trials[0], trials[1].model_copy(update=proof)], SPACE) == {}
