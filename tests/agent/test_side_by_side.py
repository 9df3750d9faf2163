"""Several trials of one study at the same time on this machine."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.campaign import Campaign
from agent.errors import NodeUnusableError, UsageError
from agent.home import Home
from agent.interruption import Interruption
from agent.recovery import own_lease
from agent.side_by_side import check_room, gpus_held, pool_of, ranks_of_study
from agent.store.opening import open_storage
from agent.store.study_store import BUDGET, StudyStore
from agent.store.trial import Trial
from runners import EngineSettings, Exit, Leftovers, Measurement, Phase, RunRecord
from runners.cookies import COOKIE_VARIABLE
from runners.processes import all_pids, read_bytes
from runners.slot import Slot
from runners.slot_pool import SlotPool
from search_spaces import SearchSpace, load_space
from tests.support.pool_in_here import PoolInHere
from tests.support.stores import sqlite_store
from tests.support.synthetic_engine import SyntheticEngine

ROOT = Path(__file__).parents[2]
SPACE = load_space("torch")
GPUS = {"gpu_count": 8, "numa_cpus": {"0": "0-31"}, "device": "cuda"}
BUDGET_OF_STUDY = 5


def settings(device: str = "cuda", ranks: int = 2) -> EngineSettings:
    """Return the settings of a study."""
    return EngineSettings(engine="torch", num_ranks=ranks, device=device)


def space_with_widths(tmp_path: Path, *widths: int) -> SearchSpace:
    """Return a space of the user's own that tunes the ranks."""
    path = tmp_path / "space.yaml"
    row = f"meaning: ranks, source: tests, values: {list(widths)}, default: {widths[0]}, flag: tp"
    path.write_text(f"engine: torch\nparameters:\n  tp: {{{row}}}\n", encoding="utf-8")
    return load_space(str(path))


def test_the_widths_of_a_study_are_those_that_its_space_tunes(tmp_path: Path) -> None:
    """Else the ranks that it was asked for."""
    assert ranks_of_study(SPACE, settings(ranks=4)) == (4,)
    assert ranks_of_study(space_with_widths(tmp_path, 1, 2, 8), settings(ranks=4)) == (1, 2, 8)


def test_trials_that_have_no_room_are_refused_before_anything_runs(tmp_path: Path) -> None:
    """With what is there, and what to do."""
    check_room(SPACE, settings(ranks=2), GPUS, {}, 4)
    check_room(SPACE, settings(ranks=8), GPUS, {}, 1)
    with pytest.raises(UsageError, match="5 trials of 2 ranks need 10 GPUs, and this node has 8"):
        check_room(SPACE, settings(ranks=2), GPUS, {}, 5)
    with pytest.raises(UsageError, match="a trial of 16 ranks needs 16 GPUs, and this node has 8"):
        check_room(space_with_widths(tmp_path, 1, 16), settings(), GPUS, {}, 2)
    with pytest.raises(UsageError, match="need 4 GPUs, and this node has 2"):
        check_room(SPACE, settings(ranks=2), GPUS, {"CUDA_VISIBLE_DEVICES": "3,4"}, 2)
    with pytest.raises(UsageError, match="--trials-per-node 3: 3 trials at the same time need a core each"):
        check_room(SPACE, settings("cpu"), {"numa_cpus": {"0": "0-1"}}, {}, 3)
    with pytest.raises(UsageError, match="fewer cores than there are GPUs"):
        check_room(SPACE, settings(ranks=1), {**GPUS, "numa_cpus": {"0": "0-3"}}, {}, 2)


def test_alone_a_trial_of_gpus_still_gets_near_ones(tmp_path: Path) -> None:
    """On cores it has all of them, and a modelled launch takes nothing."""
    assert isinstance(pool_of(SPACE, settings(), GPUS, {}, 1), SlotPool)
    assert isinstance(pool_of(SPACE, settings("cpu"), GPUS, {}, 2), SlotPool)
    modelled = settings().model_copy(update={"node_model": "/node.yaml"})
    for engine, at_once in ((settings("cpu"), 1), (modelled, 4)):
        assert not isinstance(pool_of(SPACE, engine, GPUS, {}, at_once), SlotPool)
    assert not isinstance(pool_of(SPACE, settings(), GPUS, {"CUDA_VISIBLE_DEVICES": "MIG-1"}, 1), SlotPool)


class Shared(PoolInHere):
    """A node with another slot left."""

    def goes_on_without_a_slot(self) -> bool:
        """Each launch has a slot of its own."""
        return self.num_submitted < 3


class Careless(SyntheticEngine):
    """Every launch leaves something on its slot."""

    def run(self, request: object) -> RunRecord:
        """End, and leave something."""
        left = Leftovers(gpu_memory_bytes=3 << 30)
        slot = Slot(places=(2, 3), gpus=(2, 3), cores=(8, 9))
        measured = Measurement(levels=())
        return RunRecord(
            exit=Exit(code=0), phase=Phase.STOP, wall_s=0.1, measurement=measured, leftovers=left, node="a", slot=slot
        )


def test_the_user_is_told_of_a_lost_slot_and_the_study_goes_on(tmp_path: Path) -> None:
    """It stops once the slots that are left do not do."""
    store, told = sqlite_store(tmp_path), list[str]()
    store.set_attribute(BUDGET, 9)
    campaign = Campaign(
        store=store,
        runner=Careless(),
        pool=Shared(Careless()),  # type: ignore[arg-type]
        home=Home(tmp_path / "home"),
        lease=own_lease(),
        environment={},
        observers=(),
        interruption=Interruption(),
        tell=told.append,
    )
    stop = campaign.run()
    assert (stop.resumable, stop.node_unusable) == (True, True)
    assert len(told) == 2 and all("GPUs 2-3 with cores 8-9 of node a" in each for each in told)
    assert "3.0 GiB of GPU memory" in told[0] and "other slots go on" in told[0]


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two slots of cores need two cores")
def test_two_trials_of_the_torch_engine_run_side_by_side_each_on_its_cores(tmp_path: Path) -> None:
    """A whole study through Ray: launches overlap in time and not in cores, and each record says which it had."""
    home = tmp_path / "home"
    command = [sys.executable, "-m", "agent", "search", "--budget", str(BUDGET_OF_STUDY), "--start-rung", "full"]
    command += [
        "--option",
        "preset=tiny",
        "--device",
        "cpu",
        "--tp",
        "2",
        "--trials-per-node",
        "2",
        "--accept-interference",
        "--home",
        str(home),
    ]
    seen: dict[str, set[str]] = defaultdict(set)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as agent:
        try:
            while agent.poll() is None:  # pytest ends a test that hangs
                _look(home, seen)
                with suppress(subprocess.TimeoutExpired):
                    agent.wait(0.2)
        finally:
            agent.terminate()
        assert agent.returncode == 0, agent.stderr.read() if agent.stderr else ""
    assert seen and all(len(cores) == 1 for cores in seen.values()), "every rank of a launch has the same cores"
    url = Home(home).storage_url
    store = StudyStore(open_storage(url), url, "torch")
    slots = [trial.record.slot for trial in store.trials() if trial.record is not None]
    assert len(slots) == BUDGET_OF_STUDY and all(slot is not None and slot.cores for slot in slots)
    launches = [trial for trial in store.trials() if trial.record is not None]
    pairs = [pair for pair in itertools.combinations(launches, 2) if _ran_together(*pair)]
    assert pairs, "at some moment two launches ran"
    for one, other in pairs:
        assert one.record is not None and other.record is not None
        assert one.record.slot is not None and other.record.slot is not None
        assert not set(one.record.slot.cores) & set(other.record.slot.cores)
        assert not seen[one.cookie] & seen[other.cookie]
    asked = [sys.executable, "-m", "agent", "explain", "#0", "--json", "--home", str(home)]
    told = json.loads(subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert slots[0] is not None and told["slot"] == slots[0].words()
    for one_slot, other_slot in itertools.combinations({slot for slot in slots if slot is not None}, 2):
        assert not set(one_slot.cores) & set(other_slot.cores)


def _ran_together(one: Trial, other: Trial) -> bool:
    """Whether the launches of two closed trials overlapped."""
    (first, second) = sorted((_span(one), _span(other)))
    return second[0] < first[1]


def _span(trial: Trial) -> tuple[datetime, datetime]:
    assert trial.record is not None and trial.closed_at is not None
    return trial.closed_at - timedelta(seconds=trial.record.wall_s), trial.closed_at


def _look(home: Path, seen: dict[str, set[str]]) -> None:
    """Note which cores the engines of this study may use at this moment."""
    for pid in all_pids():
        if b"runners.torch_engine" not in (read_bytes(f"/proc/{pid}/cmdline") or b""):
            continue
        text = (read_bytes(f"/proc/{pid}/environ") or b"").decode(errors="replace")
        line = re.search(rb"Cpus_allowed_list:\s*(\S+)", read_bytes(f"/proc/{pid}/status") or b"")
        cookie = re.search(rf"{COOKIE_VARIABLE}=(\w+)", text)
        if cookie and line and str(home) in (read_bytes(f"/proc/{pid}/cmdline") or b"").decode():
            seen[cookie[1]].add(line[1].decode())


def test_an_agent_keeps_the_others_off_the_gpus_that_its_trials_may_get() -> None:
    facts = {"gpu_count": 2, "gpu_uuids": [f"GPU-{os.getpid()}-{gpu}" for gpu in range(2)], "numa_cpus": {"0": "0-3"}}
    settings = EngineSettings(engine="torch", device="cuda", num_ranks=1)
    with gpus_held(settings, facts, {}):
        with (
            pytest.raises(NodeUnusableError, match="GPU 1 is held by another agent"),
            gpus_held(settings, facts, {"CUDA_VISIBLE_DEVICES": "1"}),
        ):
            pass
        with gpus_held(settings.model_copy(update={"device": "cpu"}), facts, {}):  # cores are nobody's
            pass
    with (
        gpus_held(settings, facts, {"CUDA_VISIBLE_DEVICES": "0"}),
        gpus_held(settings, facts, {"CUDA_VISIBLE_DEVICES": facts["gpu_uuids"][1]}),
    ):
        pass
