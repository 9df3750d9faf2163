"""A study whose environment changed: what matters stops it, and what was measured before is kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.deadends.dead_end import DeadEndState
from agent.environment import Changes, compare, facts_now, file_facts, refusal
from agent.epochs import begin_epoch
from agent.heritage import chart_of
from agent.propose.history import History
from agent.propose.model_based import Sampler
from agent.propose.order import Launches, propose
from agent.reasons import Reason
from agent.snapshot import snapshot_of
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Kind, Work
from agent.study_history import history_of
from agent.wishes import read_wishes
from runners import Exit, Phase, Rung, RunRecord
from runners.model_files import END_BYTES, WHOLE_BYTES, files_digest
from tests.support.lives import PASSED, failed
from tests.support.planted import FACTS, PlantedRunner
from tests.support.simulated_study import LEASE
from tests.support.stores import manifest, sqlite_store, work

GPU = {
    "device": "cuda",
    "hostname": "a",
    "kernel": "6.1",
    "gpu_names": ["H200"],
    "driver": "570.1",
    "cuda": "12.8",
    "packages": {"torch": "2.9", "vllm": "0.32"},
    "compiler": {"gcc": "12.2.0", "nvcc": "12.8.61"},
    "model_files": "0a",
}
BEFORE = 7
"""Launches before the change."""
NEW_FACTS = {**FACTS, "nccl": "2.28"}
RECORD = RunRecord(exit=Exit(code=0), phase=Phase.STOP, wall_s=2.5)


@pytest.mark.parametrize(
    "change",
    [
        {"gpu_names": ["B200"]},
        {"driver": "580.2"},
        {"cuda": "13.1"},
        {"packages": {"torch": "2.9", "vllm": "0.33"}},
        {"packages": {"torch": "2.9", "vllm": "0.32", "flashinfer-python": "0.6"}},
        {"packages": {"torch": "2.9"}},
        {"compiler": {"gcc": "12.2.0", "nvcc": "13.1.0"}},
        {"model_files": "0b"},
    ],
    ids=lambda change: str(change),
)
def test_what_a_reason_or_a_measurement_hangs_on_matters(change: dict[str, object]) -> None:
    """GPU, driver, CUDA, any package, the toolkit, the files of the model."""
    found = compare(GPU, {**GPU, **change})
    assert len(found.relevant) == 1 and not found.noted
    assert next(iter(change)) in found.relevant[0]


def test_everything_else_is_noted() -> None:
    """Another kernel, host name or patch release of a compiler makes no dead end and no figure wrong."""
    now = {**GPU, "kernel": "6.2", "hostname": "b", "compiler": {**GPU["compiler"], "gcc": "12.2.1"}}  # type: ignore[dict-item]
    found = compare(GPU, now)
    assert found.relevant == ()
    assert found.noted == ("hostname: a → b", "kernel: 6.1 → 6.2", "compiler.gcc: 12.2.0 → 12.2.1")


def test_processors_matter_where_the_ranks_run_on_them() -> None:
    """On a GPU node they do not."""
    for device, matters in (("cpu", True), ("cuda", False)):
        before = {"device": device, "num_cpus": 2}
        assert bool(compare(before, {**before, "num_cpus": 8}).relevant) is matters


def test_a_fact_that_was_not_known_before_says_nothing() -> None:
    """A study of an earlier version of the agent has fewer facts."""
    assert compare({"device": "cpu"}, {**GPU, "device": "cpu"}) == Changes((), ())


def test_the_refusal_names_the_differences_and_both_ways_on() -> None:
    text = str(refusal("mine", Changes(("driver: 1 → 2",), ()), "agent resume mine"))
    assert "driver: 1 → 2" in text
    assert "agent resume mine --accept-environment" in text and "agent search" in text


def test_files_are_told_apart_by_content_of_small_and_ends_of_large_ones(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    weights = model / "model.safetensors"
    weights.write_bytes(bytes(3 * WHOLE_BYTES))
    first = files_digest(str(model))
    assert files_digest(str(model)) == first
    with weights.open("r+b") as file:
        file.seek(-END_BYTES // 2, 2)
        file.write(b"x")
    second = files_digest(str(model))
    (model / "config.json").write_text("[]")
    assert len({first, second, files_digest(str(model))}) == 3
    (model / ".cache").mkdir()
    (model / ".cache" / "lock").write_text("1")
    (model / "config.json").write_text("{}")
    assert files_digest(str(model)) == second
    assert files_digest("organisation/model") is None


def test_a_modelled_node_is_its_file(tmp_path: Path) -> None:
    """A study of a node model has the file's digest among its facts; a changed file is a difference that matters."""
    from search_spaces import node_path

    path = tmp_path / "node.yaml"
    path.write_text(Path(node_path("h200-x2-sglang")).read_text(encoding="utf-8"), encoding="utf-8")
    engine = manifest().settings.engine.model_copy(update={"engine": "replay", "node_model": str(path)})
    settings = manifest().settings.model_copy(update={"engine": engine})
    begun = manifest().model_copy(update={"settings": settings, "facts": file_facts(engine.model_dump())})
    assert compare(begun.facts, facts_now(begun, {}, lambda _: {})) == Changes((), ())
    path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    (found,) = compare(begun.facts, facts_now(begun, {}, lambda _: {})).relevant
    assert found.startswith("node_file: ")


# The epochs of a stored study.


def closed(store: StudyStore, piece: Work, reason: Reason | None = None) -> None:
    """Store a closed trial."""
    store.close(
        store.open_trial(piece, "c", LEASE, ""), PASSED if reason is None else failed(reason, "backend"), RECORD
    )


def history(store: StudyStore) -> History:
    """Return the study as the proposer sees it."""
    wishes = read_wishes(store)
    return history_of(store, PlantedRunner(), chart_of(store, wishes), wishes)


@pytest.fixture
def store(tmp_path: Path) -> StudyStore:
    """A study in which `backend = b` is dead for a reason that hangs on NCCL; that of `backend = c` does not."""
    store = sqlite_store(tmp_path)
    store.set_attribute(BUDGET, 20)
    closed(store, work(Kind.DEFAULT))
    closed(store, work(Kind.BASELINE, draft=0))
    other: dict[str, object] = {"graph": 0, "draft": 1, "expert": True}
    closed(store, work(**other))
    for context in ({}, other):
        closed(store, work(backend="b", **context), Reason.CUDA_GRAPH_INCOMPATIBLE)
        closed(store, work(backend="c", **context), Reason.CONFIG_INVALID)
    assert len(store.trials()) == BEFORE
    return store


def states(store: StudyStore) -> dict[str, DeadEndState]:
    """Return what the map says, by its conditions."""
    return {str(found): found.state for found in history(store).atlas.dead_ends}


def test_dead_ends_go_over_and_only_those_of_a_changed_fact_are_stale(store: StudyStore) -> None:
    assert states(store) == {"backend = b": DeadEndState.CONFIRMED, "backend = c": DeadEndState.CONFIRMED}
    begin_epoch(store, NEW_FACTS, ("nccl: none → 2.28",))
    assert states(store) == {"backend = b": DeadEndState.STALE, "backend = c": DeadEndState.CONFIRMED}


def test_measurements_before_the_change_are_kept_apart_and_count_for_the_budget(store: StudyStore) -> None:
    begin_epoch(store, NEW_FACTS, ())
    seen = history(store)
    assert (seen.trials, seen.spent, seen.budget) == ((), BEFORE, 20)
    assert seen.base is None and seen.baseline_key is None
    closed(store, work(Kind.DEFAULT))
    assert [trial.number for trial in history(store).trials] == [BEFORE]
    assert history(store).spent == len(store.trials()) == BEFORE + 1


def test_the_default_and_the_baseline_are_measured_again_first_and_then_what_is_stale(store: StudyStore) -> None:
    begin_epoch(store, NEW_FACTS, ())
    (stale,) = history(store).atlas.stale
    ran: list[Work] = []
    while not ran or ran[-1].about != stale.id:
        proposal = propose(history(store), Sampler(store.manifest.space))
        assert isinstance(proposal, Launches)
        ran += proposal.works
        for piece in proposal.works:
            closed(store, piece)
    assert [piece.kind for piece in ran[:2]] == [Kind.DEFAULT, Kind.BASELINE]
    launched = [piece.resolved["backend"] for piece in ran if piece.rung is Rung.FULL]
    assert launched[-1] == "b" and "b" not in launched[:-1]


def test_another_process_sees_the_same_epochs_and_the_facts_of_each_trial(store: StudyStore) -> None:
    begin_epoch(store, NEW_FACTS, ("nccl: none → 2.28",))
    closed(store, work(Kind.DEFAULT))
    again = StudyStore(open_storage(store.url), store.url, store.name)
    assert (again.trials(), again.epochs, again.manifest) == (store.trials(), store.epochs, store.manifest)
    assert [trial.facts["nccl"] for trial in again.trials()] == ["none"] * BEFORE + ["2.28"]
    assert again.epochs[1].changes == ("nccl: none → 2.28",)


def test_a_trial_of_an_earlier_epoch_is_explained_by_the_map_of_its_time(store: StudyStore) -> None:
    from agent.reading import Reading

    begin_epoch(store, NEW_FACTS, ())
    closed(store, work(Kind.DEFAULT))
    reading = Reading(store, "", history(store), "agent resume")
    then = reading.history_with("#3")
    assert then.facts == FACTS and {found.state for found in then.atlas.dead_ends} == {DeadEndState.CONFIRMED}
    assert [trial.number for trial in then.trials] == list(range(BEFORE)) and then.earlier == 0
    assert reading.history_with(f"#{BEFORE}") is reading.history
    assert reading.history_with("#99") is reading.history


def test_mlflow_still_has_every_trial_with_the_dead_ends_of_its_time(store: StudyStore) -> None:
    before = snapshot_of(store, history(store), "interrupted")
    begin_epoch(store, NEW_FACTS, ())
    closed(store, work(Kind.DEFAULT))
    after = snapshot_of(store, history(store), "interrupted")
    assert after.trials[:BEFORE] == before.trials
    assert {number: after.dead_ends[number] for number in before.dead_ends} == before.dead_ends
    assert after.best == BEFORE
