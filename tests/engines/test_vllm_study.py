"""A whole study of a real engine: eight launches of vLLM on the CPU, through Ray, storage, map and MLflow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from agent.home import Home
from agent.reasons import Reason
from agent.session import Ended, SessionOptions, run_session
from agent.settings import StudySettings
from agent.spec import StudySpec
from agent.store.manifest import Manifest
from agent.store.opening import open_storage
from agent.store.study_store import ASKED, BUDGET, StudyStore
from agent.store.trial import Trial
from agent.studies import node_facts
from agent.summary import summarise
from runners import EngineSettings, Phase, Workload
from search_spaces import Scalar, SearchSpace, load_space
from tests.engines.conftest import InstalledEngine
from tests.engines.launches import OPTIONS, TWO_RANKS, VARIABLES, left_behind, shared_memory_names

LAUNCHES = 8
SPACE = Path(__file__).with_name("vllm_cpu.yaml")
WORKLOAD = Workload(concurrency=(1, 4), prompt_tokens=32, output_tokens=48, requests=12)


def space_with(models: Path, folder: Path) -> SearchSpace:
    """Return the space, with the models where they are."""
    path = folder / "space.yaml"
    path.write_text(SPACE.read_text(encoding="utf-8").replace("MODELS", str(models)), encoding="utf-8")
    return load_space(str(path))


def run_study(vllm: InstalledEngine, folder: Path, asked: list[dict[str, Scalar]]) -> tuple[Ended, StudyStore]:
    """Run a study that begins with the assignments asked for, and return how it ended."""
    home = Home(folder / "state")
    home.create()
    space = space_with(vllm.models, folder)
    facts = node_facts(StudySpec(engine="vllm", tp=1, device="cpu"))
    engine = EngineSettings(
        engine="vllm",
        num_ranks=1,
        device="cpu",
        options=OPTIONS,
        variables={**VARIABLES, **TWO_RANKS},
        python=vllm.python,
        model=str(vllm.models / "target"),
        draft_model=str(vllm.models / "near"),
    )
    settings = StudySettings(name="vllm", engine=engine, space="vllm_cpu", workload=WORKLOAD)
    manifest = Manifest(settings=settings, space=space, facts=facts, created_at=datetime.now(UTC))
    store = StudyStore.create(open_storage(home.storage_url), home.storage_url, manifest)
    store.set_attribute(BUDGET, LAUNCHES)
    store.set_attribute(ASKED, [space.normalise({**space.default_on(facts), **point}, facts) for point in asked])
    options = SessionOptions(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    return run_session(store, home, options, Console(file=io.StringIO())), store


def with_values(trials: Sequence[Trial], **values: Scalar) -> list[Trial]:
    """Return the trials that asked for these values."""
    return [trial for trial in trials if values.items() <= trial.work.requested.items()]


def reasons(trials: Sequence[Trial]) -> set[Reason | None]:
    """Return why the trials failed; None for one that did not."""
    return {trial.outcome.failure.reason if trial.outcome and trial.outcome.failure else None for trial in trials}


def phases(trials: Sequence[Trial]) -> set[Phase]:
    """Return how far the launches came."""
    return {trial.record.phase for trial in trials if trial.record}


def left_of(trial: Trial) -> list[str]:
    """Return the processes and folders that there still are of a launch of the study, by looking for them.

    What is new in /dev/shm after so many minutes may be anybody's.
    """
    assert trial.record is not None
    return left_behind(trial.cookie, trial.record, shared_memory_names())


@pytest.mark.timeout(900)
def test_eight_launches_find_what_works_and_why_the_rest_does_not(vllm: InstalledEngine, tmp_path: Path) -> None:
    """Seven assignments are asked for, as with `agent try`; the last launch is the search's own choice."""
    near, foreign = str(vllm.models / "near"), str(vllm.models / "foreign")
    asked: list[dict[str, Scalar]] = [
        {"speculative_method": "draft_model", "draft_model": near, "num_speculative_tokens": 2, "max_num_seqs": 2},
        {"speculative_method": "draft_model", "draft_model": foreign},
        {},
        {"speculative_method": "ngram", "num_speculative_tokens": 4},
        {"speculative_method": "suffix"},
        {"tensor_parallel_size": 3},
        {"tensor_parallel_size": 2},
    ]
    ended, store = run_study(vllm, tmp_path, asked)
    trials = store.trials()
    everything = (*trials, *store.probes())  # what a cheaper rung shows costs no launch
    assert [left for trial in trials for left in left_of(trial)] == []
    assert (ended.stop.why, len(trials)) == ("the budget is spent", LAUNCHES)
    failed = [trial for trial in everything if trial.is_failed]
    assert reasons(
        with_values(failed, speculative_method="draft_model", draft_model=foreign, tensor_parallel_size=1)
    ) == {Reason.DRAFT_MISMATCH}
    assert reasons(with_values(failed, speculative_method="suffix", tensor_parallel_size=1)) == {
        Reason.MISSING_DEPENDENCY
    }
    assert reasons(with_values(failed, speculative_method="none", tensor_parallel_size=3)) == {Reason.CONFIG_INVALID}
    early = (Phase.RESOLVE, Phase.SPAWN, Phase.INIT_DISTRIBUTED, Phase.LOAD_WEIGHTS)
    assert phases(failed) <= set(early)
    assert sum(trial.is_measured for trial in trials) >= 4
    found = {condition for each in ended.history.atlas.dead_ends for condition in map(str, each.conditions)}
    assert {f"draft_model = {foreign}", "speculative_method = suffix", "tensor_parallel_size = 3"} <= found
    for drafted in (trials[0], next(iter(with_values(trials, speculative_method="ngram")))):
        assert acceptance(drafted) > 1.0
    expected = {"speculative_method": "draft_model", "num_speculative_tokens": 2, "max_num_seqs": 2}
    assert proofs(trials[0]) == expected
    assert with_values(trials, tensor_parallel_size=2)
    assert summarise(ended.history, "vllm").best is not None
    assert all(trial.record is not None and trial.record.leftovers.is_clean for trial in trials)


def acceptance(trial: Trial) -> float:
    """Return the acceptance length at the lowest level."""
    assert trial.record is not None and trial.record.measurement is not None
    return trial.record.measurement.levels[0].acceptance_length


def proofs(trial: Trial) -> dict[str, Scalar]:
    """Return what the log proved of the assignment, without the number of ranks."""
    assert trial.record is not None
    proven = {proof.parameter: proof.effective for proof in trial.record.effects}
    assert proven.pop("tensor_parallel_size") == trial.work.requested["tensor_parallel_size"]
    return proven
