"""Of two explanations that differ only in what is dead anyway, the shorter one stands for both."""

from __future__ import annotations

from agent.deadends.charter import chart
from agent.deadends.dead_end import DeadEnd
from agent.deadends.evidence import Evidence, Failed
from agent.deadends.observation import observation_of
from agent.deadends.strikes import folded
from agent.outcome import Outcome, OutcomeKind
from agent.reasons import Reason
from agent.store.trial import Kind
from runners import Phase, Rung
from search_spaces import Comparison, Condition, Conjunction, Scalar
from tests.support.dead_ends import dead
from tests.support.limits import PASSED, Row, row
from tests.support.planted import FACTS, Planted, small_space
from tests.support.strategies import numbered

SPACE = small_space()
DRAFT_3 = Condition(parameter="draft", value=3)
EXPERT, NO_EXPERT = (Condition(parameter="expert", value=value) for value in (True, False))


def outcome(reason: Reason, phase: Phase, *blames: str) -> Outcome:
    """Return a failure in a phase, with these blames."""
    failure = Planted((), reason).failure.model_copy(update={"blames": blames, "phase": phase})
    return Outcome(kind=OutcomeKind.FAILED, failure=failure)


def probe(found: Outcome, backend: str, draft: int, graph: int, expert: bool) -> Row:
    """Return a probe and its outcome."""
    return row(found, backend, draft, graph, expert)[0], Rung.PROBE, found


def backend(value: str) -> Condition:
    """Return the condition that a backend runs."""
    return Condition(parameter="backend", value=value)


def left(
    strikes: list[DeadEnd], evidence: Evidence | None = None, failed: Failed | None = None, longer: float = 0.1
) -> list[tuple[str, ...]]:
    """Return what stays of `draft = 3` and `draft = 3 ∧ expert = true`, in words."""
    evidence = evidence or Evidence(SPACE, FACTS)
    number = {str(each): each for each in (DRAFT_3, EXPERT)}
    numbers = {name: _number(evidence, each.parameter, each.value) for name, each in number.items()}
    short, long = (numbers[str(DRAFT_3)],), (numbers[str(DRAFT_3)], numbers[str(EXPERT)])
    found = folded([(1.0 - longer, short, 2), (longer, long, 2)], strikes, evidence, failed)
    return [tuple(str(evidence.lexicon.condition(each)) for each in conditions) for _, conditions, _ in found]


def _number(evidence: Evidence, name: str, value: Scalar) -> int:
    numbers = evidence.lexicon.satisfied(name, value)
    return next(each for each in numbers if evidence.lexicon.condition(each).comparison is Comparison.EQUAL)


BOTH: list[tuple[str, ...]] = [("draft = 3",), ("draft = 3", "expert = true")]
SHORT = BOTH[:1]


def conjunctions(*values: str) -> list[DeadEnd]:
    """Return dead ends of these backends, each without `expert`."""
    rest: Conjunction = (NO_EXPERT,)
    return [dead(backend(value), *rest) for value in values]


def test_one_dead_end_that_takes_in_the_difference() -> None:
    """Without `expert` nothing runs: nobody can tell whether it belongs to the cause."""
    assert left([]) == BOTH
    assert left([dead(NO_EXPERT)]) == SHORT
    assert left([dead(NO_EXPERT, DRAFT_3)]) == SHORT


def test_the_longer_one_stands_for_both_where_it_is_likelier() -> None:
    """The message names `expert`: nobody can tell, but a cause without it is the less likely one."""
    assert left([dead(NO_EXPERT)], longer=0.9) == BOTH[1:]
    assert left([], longer=0.9) == BOTH


def test_several_longer_ones_that_nothing_tells_from_a_cause() -> None:
    """One of them is rarely it, but three of them are one time in four: then nobody can tell."""
    evidence = Evidence(SPACE, FACTS)
    draft = _number(evidence, "draft", 3)
    others = [_number(evidence, name, value) for name, value in (("expert", True), ("backend", "a"), ("graph", 0))]
    strikes = [
        dead(NO_EXPERT),
        *(dead(backend(value)) for value in ("b", "c", "d")),
        dead(Condition(parameter="graph", comparison=Comparison.AT_LEAST, value=1)),
    ]
    short, *longer = [(1.0, (draft,), 2), *((0.08, (draft, each), 2) for each in others)]
    assert [numbers for _, numbers, _ in folded([short, *longer[:2]], strikes, evidence)] == [(draft,)]
    assert len(folded([short, *longer], strikes, evidence)) == 4


def test_several_that_take_it_in_together() -> None:
    """Each backend is dead without `expert`, one of them only where the draft is 3."""
    assert left([*conjunctions("a", "b", "c"), dead(backend("d"), NO_EXPERT, DRAFT_3)]) == SHORT


def test_one_value_that_runs_is_enough_to_tell() -> None:
    """With `backend = d` a launch without `expert` gives the answer."""
    assert left(conjunctions("a", "b", "c")) == BOTH
    draft_2 = Condition(parameter="draft", value=2)
    assert left([*conjunctions("a", "b", "c"), dead(backend("d"), NO_EXPERT, draft_2)]) == BOTH


def test_a_value_that_the_engine_always_replaces_needs_no_dead_end() -> None:
    """What never runs gives no answer."""
    evidence, default = Evidence(SPACE, FACTS), SPACE.default_on(FACTS)
    evidence.note_values({**default, "backend": "d"}, {**default, "backend": "a"})
    assert left(conjunctions("a", "b", "c"), evidence) == SHORT


def test_a_probe_is_not_run_where_a_launch_would_die() -> None:
    """So a failure that a probe shows is told apart from nothing there: one more experiment would never come."""
    early = outcome(Reason.TOPOLOGY_UNSUPPORTED, Phase.SPAWN, "backend", "expert")
    passed = [probe(PASSED, "a", draft, graph, expert) for draft, graph, expert in ((0, 0, True), (1, 8, False))]
    dead = [row(early, "b", draft, graph, True) for draft, graph in ((0, 0), (1, 8), (2, 1))]
    by_probe = outcome(Reason.CUDA_GRAPH_INCOMPATIBLE, Phase.WARMUP)
    fails = [probe(by_probe, "b", draft, graph, False) for draft, graph in ((0, 0), (1, 2), (2, 8), (3, 1))]
    trials = numbered([*passed, *dead, *fails, row(by_probe, "b", 3, 0, False), row(PASSED, "a", 0, 0, True)])
    launches = [trial for trial in trials if trial.work.kind is not Kind.PROBE]
    found = chart(launches, [trial for trial in trials if trial.work.kind is Kind.PROBE], SPACE, FACTS).confirmed
    assert {(str(each), each.rung) for each in found} == {
        ("backend = b ∧ expert = true", Rung.FULL),
        ("backend = b", Rung.PROBE),
    }


def seen(*rows: Row) -> tuple[Evidence, Failed]:
    """Return what these launches show, and the first of their failures."""
    evidence = Evidence(SPACE, FACTS)
    for trial in numbered(list(rows)):
        observation = observation_of(trial, SPACE)
        assert observation is not None
        evidence.add(observation)
    return evidence, evidence.reasons[Reason.UNSUPPORTED_ARCH].failures[0]


FAILS = row(outcome(Reason.UNSUPPORTED_ARCH, Phase.INIT_DISTRIBUTED), "a", 3, 0, True)


def test_what_else_struck_in_the_same_phase_speaks_against_the_shorter_one() -> None:
    """Had `draft = 3` been the cause, it would have come before one of the two by now."""
    others = [
        row(outcome(reason, Phase.INIT_DISTRIBUTED), backend, 3, 0, False)
        for reason, backend in ((Reason.TOPOLOGY_UNSUPPORTED, "a"), (Reason.COLLECTIVE_TIMEOUT, "b"))
    ]
    evidence, failed = seen(FAILS, *others)
    assert left([dead(NO_EXPERT)], evidence, failed) == BOTH


def test_what_struck_in_another_phase_or_elsewhere_does_not() -> None:
    """What comes earlier leaves nothing for a later one; with `expert`, both causes strike alike."""
    others = [
        row(outcome(Reason.TOPOLOGY_UNSUPPORTED, Phase.SPAWN), "a", 3, 0, False),
        row(outcome(Reason.ASSERTION, Phase.SPAWN), "b", 3, 0, False),
        row(outcome(Reason.COLLECTIVE_TIMEOUT, Phase.INIT_DISTRIBUTED), "b", 3, 1, True),
        row(outcome(Reason.COLLECTIVE_ERROR, Phase.INIT_DISTRIBUTED), "c", 2, 1, False),
    ]
    evidence, failed = seen(FAILS, *others)
    assert left([dead(NO_EXPERT)], evidence, failed) == SHORT
