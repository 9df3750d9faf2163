"""Which launch is expected to improve most: what is in flight counts, and what does nothing is no candidate."""

from __future__ import annotations

from dataclasses import replace

from agent.propose import improve
from agent.propose.changes import Changes
from agent.propose.history import History
from agent.propose.improve import Improvement
from agent.propose.order import Launches, propose
from agent.store.trial import Kind, Trial, Work
from runners import Rung
from search_spaces import assignment_key, load_node
from search_spaces.node_generator import generate
from tests.support.modelled_study import ModelledStudy
from tests.support.simulated_study import LEASE, START


def history_before_an_improvement(launches: int = 8) -> History:
    """Return a study of a modelled node when the next launch is one that is expected to improve."""
    study = ModelledStudy(node=load_node("nvlink8-hopper-moe"), budget=40)
    seen: list[History] = []

    def note(history: History, proposal: object) -> None:
        if isinstance(proposal, Launches) and proposal.works[0].stage == "expected to improve":
            seen.append(history)

    study.on_proposal = note
    study.run(steps=200)
    return next(replace(history) for history in seen if len(history.launches) >= launches)


def with_one_in_flight(history: History, work: Work) -> History:
    """Return the history with a launch that is not closed yet."""
    trial = Trial(study="study", number=len(history.trials), work=work, cookie="c", lease=LEASE, started_at=START)
    return replace(history, trials=(*history.trials, trial))


def test_a_launch_in_flight_makes_its_neighbours_worth_less() -> None:
    """They are expected to tell little more than it will; without this, every slot would try the same idea."""
    history = history_before_an_improvement()
    first = improve.propose(history)
    assert first is not None and first.kind is Kind.SEARCH
    later = with_one_in_flight(history, first)
    before, after = Improvement(history), Improvement(later)
    changes = (history.space.normalise(point, history.facts) for point in history.space.single_changes(first.resolved))
    neighbours = {assignment_key(point): point for point in changes}
    before._look_at(neighbours)
    after._look_at(neighbours)
    open_ = after._promises.keys() & before._promises.keys()
    assert open_ and sum(map(after._promises.__getitem__, open_)) < sum(map(before._promises.__getitem__, open_))


def test_with_a_launch_in_flight_another_one_is_proposed() -> None:
    """The same launch is not proposed twice, and the proposal depends on nothing but the history."""
    history = history_before_an_improvement()
    first = improve.propose(history)
    assert first is not None
    later = with_one_in_flight(history, first)
    second = improve.propose(later)
    assert second is not None and second.identity != first.identity
    assert improve.propose(replace(later)) == second


def test_a_value_that_was_seen_to_do_nothing_is_not_launched_again() -> None:
    """Its candidates count as what runs instead: combinations with it are no new assignments."""
    node = generate(307)  # one value of its all-to-all backend silently runs as another
    study = ModelledStudy(node=node, budget=24)
    study.run()
    rewrites = study.history().silent_rewrites
    assert rewrites
    seen: set[str] = set()
    for trial in study.trials:
        asked = [item for item in trial.work.requested.items() if item in rewrites]
        if trial.work.kind is Kind.SEARCH and asked:
            assert not set(map(str, asked)) <= seen, f"trial {trial.number} asks for {asked} again"
            seen |= set(map(str, asked))


def test_a_study_with_two_slots_never_runs_the_same_assignment_twice_at_once() -> None:
    """Two launches in flight differ in what runs."""
    study = ModelledStudy(node=load_node("generated-small-1"), budget=16, slots=2)

    def check(history: History, proposal: object) -> None:
        open_ = [trial.work.key for trial in history.launches if not trial.is_closed]
        if isinstance(proposal, Launches):
            assert not set(open_) & {work.key for work in proposal.works if work.rung is Rung.FULL}
            assert propose(replace(history), study._sampler) == proposal

    study.on_proposal = check
    study.run()


def test_a_way_to_draft_comes_with_each_of_its_lengths() -> None:
    """With its usual one it may look worse than none, and the better one would be two changes away."""
    history = history_before_an_improvement()
    plain = history.without_speculation(history.default)
    candidates = Changes(history).of(plain).values()
    drafted = {history.space.num_drafted(point, history.facts) for point in candidates}
    assert drafted >= set(history.space.parameters["speculative_num_steps"].domain)
    single = [history.space.normalise(point, history.facts) for point in history.space.single_changes(plain)]
    assert len({history.space.num_drafted(point, history.facts) for point in single}) == 2


def test_another_kind_of_collective_keeps_a_doubt_that_its_settings_do_not() -> None:
    """A probe settles what NCCL's settings do, and not what a kernel fused with what follows does."""
    effects = Improvement(history_before_an_improvement())._effects
    assert effects.kept == {"allreduce": improve.KIND_EFFECT}
    assert {"nccl_algo", "nccl_proto", "nccl_max_ctas"} <= set(effects.settled)
    assert "cuda_graph_max_bs" in effects.open  # a probe sees it, and it does more than that
