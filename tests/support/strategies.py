"""Hypothesis strategies: small spaces, planted causes, and evidence, both truthful and arbitrary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import strategies as st

from agent.outcome import Outcome, OutcomeKind
from agent.reasons import REASONS, Policy, Reason
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import Assignment, SearchSpace
from search_spaces.condition import Comparison, Condition
from tests.support.planted import Planted, Truth, parameter, record_of, small_space
from tests.support.simulated_study import LEASE

GENERALISED = [
    row.reason
    for row in REASONS.values()
    if row.policy in (Policy.DEAD_AT_ONCE, Policy.CONFIRM_ONCE, Policy.RETRY_ONCE)
]
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """Two to four parameters of texts, numbers, ordered numbers or switches."""
    domains: dict[str, object] = {}
    for index in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from(["text", "number", "ordered", "switch"]))
        size = draw(st.integers(2, 4))
        values = {
            "text": ("x", "y", "z", "w")[:size],
            "number": (0, 1, 2, 3)[:size],
            "ordered": (0, 2, 4, 8)[:size],
            "switch": (False, True),
        }[kind]
        name = f"p{index}"
        domains[name] = parameter(values, values[0], monotone=kind == "ordered", seen_by_probe=draw(st.booleans()))
    return SearchSpace.model_validate({"engine": "synthetic", "parameters": domains})


def assignments(space: SearchSpace) -> st.SearchStrategy[Assignment]:
    """Complete assignments of a space."""
    return st.fixed_dictionaries({name: st.sampled_from(each.domain) for name, each in space.parameters.items()})


@st.composite
def planted_causes(draw: st.DrawFn, space: SearchSpace, has_blames: bool = True) -> Planted:
    """A cause of one or two conditions; of a monotone parameter, everything from some value on."""
    names = draw(st.lists(st.sampled_from(list(space.parameters)), min_size=1, max_size=2, unique=True))
    conditions = []
    for name in names:
        each = space.parameters[name]
        comparison = Comparison.AT_LEAST if each.monotone else Comparison.EQUAL
        value = draw(st.sampled_from(each.domain[1:] if each.monotone else each.domain))
        conditions.append(Condition(parameter=name, comparison=comparison, value=value))
    return Planted(tuple(conditions), draw(st.sampled_from(GENERALISED[:6])), has_blames)


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """A space with one to three planted causes whose blames are true."""
    space = draw(spaces())
    return Truth(space, tuple(draw(st.lists(planted_causes(space), min_size=1, max_size=3))))


@st.composite
def truthful_evidence(draw: st.DrawFn) -> tuple[Truth, list[Trial]]:
    """A truth, and what a few launches and probes at random points of its space show of it."""
    truth = draw(truths())
    points = draw(st.lists(st.tuples(assignments(truth.space), rungs()), min_size=1, max_size=14))
    return truth, numbered([(point, rung, truth.outcome(point, rung)) for point, rung in points])


@st.composite
def arbitrary_evidence(draw: st.DrawFn) -> tuple[SearchSpace, list[Trial]]:
    """Trials that no truth stands behind: flaky ones, blames that accuse the wrong parameter, and so on."""
    space = draw(spaces())
    names = list(space.parameters)
    rows = []
    for point, rung in draw(st.lists(st.tuples(assignments(space), rungs()), min_size=1, max_size=14)):
        passed = Outcome(kind=OutcomeKind.MEASURED, value=1.0)
        outcome = passed if draw(st.booleans()) else draw(_failures(names))
        rows.append((point, rung, outcome))
    return space, numbered(rows)


def rungs() -> st.SearchStrategy[Rung]:
    """The rungs that a trial may run at."""
    return st.sampled_from([Rung.PROBE, Rung.FULL])


def numbered(rows: Sequence[tuple[Assignment, Rung, Outcome]]) -> list[Trial]:
    """Return the rows as closed trials, numbered as a study and its companion number them."""
    trials: list[Trial] = []
    for point, rung, outcome in rows:
        kind = Kind.PROBE if rung is Rung.PROBE else Kind.SEARCH
        trials.append(
            Trial(
                study="study/probes" if kind is Kind.PROBE else "study",
                number=sum(other.work.kind is kind for other in trials),
                work=Work(kind=kind, rung=rung, requested=point, resolved=point),
                cookie="c",
                lease=LEASE,
                started_at=MOMENT,
                closed_at=MOMENT,
                outcome=outcome,
                record=record_of(outcome),
            )
        )
    return trials


@st.composite
def _failures(draw: st.DrawFn, names: list[str]) -> Outcome:
    reason = draw(st.sampled_from([Reason.GPU_OOM, Reason.ASSERTION, Reason.SERVER_HANG, Reason.UNKNOWN]))
    failure = Planted((), reason).failure
    blames = tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True)))
    return Outcome(kind=OutcomeKind.FAILED, failure=failure.model_copy(update={"blames": blames}))


@st.composite
def planted_studies(draw: st.DrawFn) -> Truth:
    """The small space with up to three planted causes: for driving a whole study."""
    space = small_space()
    causes = st.lists(st.booleans().flatmap(lambda blames: planted_causes(space, blames)), max_size=3)
    return Truth(space, tuple(draw(causes)))
