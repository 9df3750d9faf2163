"""Trials as Ray tasks: order, loss, resources, and who may talk to the cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners import EngineSettings, Rung, TrialRequest, Workload, ray_pool
from runners.cookies import find_processes
from runners.ray_pool import Lost, PoolError, RayPool
from search_spaces import load_space
from tests.support.failing_engines import HOLD
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
SPACE = load_space("torch")
SYNTHETIC = "tests.support.synthetic_engine:SyntheticEngine"
HOLDING = "tests.support.failing_engines:HoldingEngine"


@pytest.fixture(scope="module")
def pool() -> Iterator[RayPool]:
    """A local Ray of our own, in the environment of somebody who switched its authentication off for another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setattr(sys, "excepthook", sys.__excepthook__)  # an earlier test that imported Ray has left its own
        pool = RayPool(num_cpus=2)
        pool.start()
        yield pool
        pool.stop()
        assert os.environ["RAY_AUTH_MODE"] == "disabled"


def request_for(engine: str, folder: Path, trial: int = 0, **environment: str) -> TrialRequest:
    """Return a request for an engine that needs no process, or lasts until told."""
    return TrialRequest(
        study="pool",
        trial=trial,
        rung=Rung.FULL,
        settings=EngineSettings(engine=engine, num_ranks=2, device="cpu"),
        assignment=SPACE.default_on({"device": "cpu"}),
        workload=Workload(concurrency=(1,)),
        cookie=f"pool-{os.getpid()}-{folder.name}-{trial}",
        environment={**os.environ, **environment},
        artifact_dir=str(folder / str(trial)),
    )


@pytest.fixture(scope="module")
def handlers() -> dict[int, object]:
    """What these signals do before Ray comes up: a shell that starts this in the background has SIGINT ignored."""
    return {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}


def test_what_a_signal_does_is_what_it_did_before_ray_came_up(handlers: dict[int, object], pool: RayPool) -> None:
    """Ray would end the process on SIGTERM, which ends a search cleanly."""
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_an_exception_that_nobody_catches_is_told_without_asking_ray(pool: RayPool) -> None:
    """Ray's own way asks a GCS that may be dead, and ends the process with exit code 1 and without a word."""
    from ray._private.worker import custom_excepthook

    assert sys.excepthook is not custom_excepthook


def test_a_batch_comes_back_in_the_order_of_its_requests(pool: RayPool, tmp_path: Path) -> None:
    """Records are matched to trials by position."""
    requests = [request_for(SYNTHETIC, tmp_path, number) for number in range(3)]
    task = pool.submit(requests)
    wait_until(lambda: pool.wait([task], 1.0), 60.0)
    records = pool.result(task)
    assert isinstance(records, list)
    assert len(records) == 3


def test_all_batches_that_have_ended_come_back_together(pool: RayPool, tmp_path: Path) -> None:
    """What is proposed next is chosen with the answers of all of them."""
    tasks = [pool.submit([request_for(SYNTHETIC, tmp_path, number)]) for number in range(3)]
    for task in tasks:
        wait_until(lambda task=task: pool.wait([task], 1.0), 60.0)
    assert pool.wait(tasks, 1.0) == tasks


def test_a_killed_worker_is_a_loss_that_is_not_run_again_and_leaves_nothing(pool: RayPool, tmp_path: Path) -> None:
    """kill -9 of the task: its warden ends the engine, and Ray does not start the task a second time."""
    hold = tmp_path / "hold"
    hold.touch()
    request = request_for(HOLDING, tmp_path, **{HOLD: str(hold)})
    task = pool.submit([request])
    log = Path(request.artifact_dir) / "engine.log"
    wait_until(lambda: log.exists() and log.read_text(), 60.0)
    worker = next(pid for pid in _workers() if _is_ancestor(pid, find_processes(request.cookie)[0].pid))
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: pool.wait([task], 1.0), 60.0)
    assert isinstance(pool.result(task), Lost)
    wait_until(lambda: not find_processes(request.cookie))
    length = log.stat().st_size
    assert not pool.wait([], 0.0) and log.stat().st_size == length


def test_more_ranks_than_the_cluster_has_is_said_at_once(pool: RayPool) -> None:
    """Otherwise the task would wait for ever."""
    with pytest.raises(PoolError, match="needs 64 CPUs and Ray has 2"):
        pool.require(EngineSettings(engine=SYNTHETIC, num_ranks=64, device="cpu"))


@pytest.mark.slow  # Ray itself takes twenty seconds to give up
@pytest.mark.parametrize(
    "variables",
    [{"RAY_AUTH_TOKEN": "0" * 64}, {"RAY_AUTH_MODE": "disabled"}],
    ids=["wrong token", "no token"],
)
def test_a_client_without_the_token_is_refused(pool: RayPool, tmp_path: Path, variables: dict[str, str]) -> None:
    """Ray's sockets do not keep to the loopback interface, and whoever may talk to them runs code."""
    import ray

    address = ray.get_runtime_context().gcs_address
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    code = f"import ray; ray.init(address={address!r}, logging_level='ERROR')"
    stranger = {**environment, "HOME": str(tmp_path), **variables}
    refused = subprocess.run([sys.executable, "-c", code], env=stranger, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "authenticat" in (refused.stdout + refused.stderr).lower()


def test_a_process_that_imported_ray_before_is_told_what_to_do(tmp_path: Path) -> None:
    """Ray would try for ten seconds to reach a cluster that refuses it, and say that it failed to start."""
    code = "import ray; from runners.ray_pool import RayPool; RayPool(num_cpus=1).start()"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode != 0
    assert "imported Ray without RAY_AUTH_MODE=token" in told.stderr


def test_the_token_is_drawn_for_this_process(pool: RayPool) -> None:
    """Not the one that Ray keeps in a file for all clusters of a user."""
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    kept = Path.home() / ".ray" / "auth_token"
    assert not kept.exists() or kept.read_text(encoding="utf-8").strip() != os.environ["RAY_AUTH_TOKEN"]


def _workers() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (folder / "cmdline").exists():
            command = (folder / "cmdline").read_bytes()
            if command.startswith(b"ray::"):
                found.append(int(folder.name))
    return found


def _is_ancestor(ancestor: int, pid: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return False


def test_files_come_back_from_a_node_that_does_not_see_the_folder(
    pool: RayPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its mark the worker takes the folder for another node's, as one without a shared file system does."""
    monkeypatch.setattr(ray_pool, "mark", lambda request: None)
    request = request_for("tests.support.synthetic_engine:ProcessSyntheticEngine", tmp_path)
    task = pool.submit([request])
    wait_until(lambda: pool.wait([task], 1.0), 60.0)
    assert not Path(request.artifact_dir).exists()
    records = pool.result(task)
    assert isinstance(records, list)
    assert records[0].log_path is not None
    assert Path(records[0].log_path).parent == Path(request.artifact_dir)
    assert Path(records[0].log_path).is_file()
    assert Path(request.artifact_dir, "phases.jsonl").read_text(encoding="utf-8")
