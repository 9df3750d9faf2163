"""A study that tunes the ranks, on a node with four GPUs that are not there: the whole loop, with Ray's tasks faked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.campaign import Campaign
from agent.home import Home
from agent.interruption import Interruption
from agent.recovery import own_lease
from agent.settings import StudySettings
from agent.side_by_side import pool_of
from agent.store.manifest import Manifest
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from runners import EngineSettings, Exit, Leftovers, Phase, Rung, RunRecord, TrialRequest
from runners.ray_pool import Lost, RayPool, Running
from search_spaces import load_space
from tests.support.synthetic_engine import SyntheticEngine, measured

FACTS = {
    **{"device": "cuda", "num_ranks": 4, "engine_version": "synthetic 1", "hostname": "node", "gpu_count": 4},
    **{"links": ["X PIX SYS SYS", "PIX X SYS SYS", "SYS SYS X PIX", "SYS SYS PIX X"], "numa_cpus": {"0": "0-7"}},
}
SPACE = """
engine: synthetic
parameters:
  tp: {meaning: ranks, source: tests, values: [1, 2, 4], default: 4, flag: tp}
  draft_length: {meaning: tokens, source: tests, values: [0, 1, 2, 3, 4, 5], default: 2, flag: draft}
  graph: {meaning: size, source: tests, values: [0, 8, 16, 32], default: 8, flag: graph}
baseline: {draft_length: 0}
"""


class Launched(SyntheticEngine):
    """Launches only, and what each of them leaves behind."""

    rungs = (Rung.FULL,)
    dirty: frozenset[int] = frozenset()
    """Numbers of launches that leave GPU memory behind."""

    def run(self, request: TrialRequest) -> RunRecord:
        """Answer, with its slot as a Ray worker would note it."""
        left = Leftovers(gpu_memory_bytes=(1 << 30) * (request.trial in self.dirty))
        found = measured(request)
        return RunRecord(
            exit=Exit(code=0), phase=Phase.STOP, wall_s=1.0, measurement=found, leftovers=left, slot=request.slot
        )


class FakeRay:
    """Tasks that end in a drawn order; what runs at the same time is checked when one more is handed out."""

    def __init__(self, engine: SyntheticEngine) -> None:
        self._engine, self._rng = engine, random.Random(1)
        self.running: list[Running] = []
        self.most = 0
        self.seen: list[tuple[int, tuple[int, ...]]] = []
        """Ranks and GPUs of each launch, in order."""

    def submit(self, requests: Sequence[TrialRequest]) -> Running:
        """Take a batch in."""
        task = Running(object(), tuple(requests))
        slot, ranks = requests[0].slot, int(requests[0].assignment["tp"])
        assert slot is not None and len(slot.gpus) == ranks
        assert requests[0].environment["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, slot.gpus))
        others = [gpu for each in self.running for gpu in each.requests[0].slot.gpus if each.requests[0].slot]
        assert not set(slot.gpus) & set(others)
        self.running.append(task)
        self.most = max(self.most, len(self.running))
        self.seen.append((ranks, slot.gpus))
        return task

    def wait(self, running: Sequence[Running]) -> list[Running]:
        """End one of them."""
        assert {id(each) for each in running} == {id(each) for each in self.running}
        return [self._rng.choice(self.running)]

    def result(self, task: Running) -> list[RunRecord] | Lost:
        """Answer."""
        self.running = [each for each in self.running if each is not task]
        return [self._engine.run(request) for request in task.requests]


def campaign_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Launched
) -> tuple[Campaign, FakeRay, list[str]]:
    """Return a study of 24 launches, four at the same time, and what its user is told."""
    path = tmp_path / "space.yaml"
    path.write_text(SPACE, encoding="utf-8")
    space = load_space(str(path))
    settings = EngineSettings(engine="synthetic", num_ranks=4, device="cuda")
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = StudySettings(name="widths", engine=settings, space="widths")
    manifest = Manifest(settings=study, space=space, facts=FACTS, created_at=datetime(2026, 1, 1, tzinfo=UTC))
    store = StudyStore.create(open_storage(url), url, manifest)
    store.set_attribute(BUDGET, 24)
    ray, told = FakeRay(engine), list[str]()
    monkeypatch.setattr(RayPool, "submit", lambda pool, requests, *_: ray.submit(requests))
    monkeypatch.setattr(RayPool, "wait", lambda pool, running, timeout_s: ray.wait(running))
    monkeypatch.setattr(RayPool, "result", lambda pool, task: ray.result(task))
    campaign = Campaign(
        store=store,
        runner=engine,
        pool=pool_of(space, settings, FACTS, {}, 4),
        home=Home(tmp_path / "home"),
        lease=own_lease(),
        environment={},
        observers=(),
        interruption=Interruption(),
        slots=4,
        tell=told.append,
    )
    return campaign, ray, told


def test_trials_of_several_widths_share_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU has two trials, two ranks share a switch, all widths come to their turn, and the budget is spent."""
    campaign, ray, told = campaign_on(tmp_path, monkeypatch, Launched())
    stop = campaign.run()
    assert "budget" in stop.why and len(ray.seen) == 24 and told == []
    assert {ranks for ranks, _ in ray.seen} == {1, 2, 4} and ray.most > 1
    assert {gpus for ranks, gpus in ray.seen if ranks == 2} <= {(0, 1), (2, 3)}


def test_a_study_whose_widest_trial_finds_no_slot_any_more_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One GPU is quarantined, and four ranks need all of them."""

    class Dirty(Launched):
        dirty = frozenset({3})

    campaign, _, told = campaign_on(tmp_path, monkeypatch, Dirty())
    stop = campaign.run()
    assert stop.node_unusable and stop.resumable and "launch #3 left 1.0 GiB of GPU memory" in stop.why
    assert all(trial.is_closed for trial in campaign.store.trials()) and told == []
