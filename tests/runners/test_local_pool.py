"""The pool with a thread of its own for what only asks the engine: it outlives a Ray that is put in another's place."""

from __future__ import annotations

from pathlib import Path

from runners import EngineSettings, Rung
from runners.local_pool import LadderPool
from runners.ray_pool import Running
from tests.support.launches import make_request
from tests.support.waiting import wait_until

ENGINE = EngineSettings(engine="tests.support.synthetic_engine:SyntheticEngine", num_ranks=1, device="cpu")


def asked(pool: LadderPool, folder: Path) -> Running:
    """Ask the engine, and wait for its answer."""
    assignment = {"allreduce": "ring", "draft_length": 1, "cuda_graph_max_bs": 0}
    task = pool.submit([make_request(folder, rung=Rung.RESOLVE, settings=ENGINE, assignment=assignment)])
    wait_until(lambda: pool.wait([task], 1.0))
    return task


def test_an_engine_can_be_asked_after_ray_was_replaced(tmp_path: Path) -> None:
    """Replacing Ray stops the pool and starts it again; nothing of the first life counts in the second."""
    pool = LadderPool()
    unread = asked(pool, tmp_path / "unread")
    (record,) = pool.result(asked(pool, tmp_path / "before"))
    pool.stop()
    (again,) = pool.result(asked(pool, tmp_path / "after"))
    pool.stop()
    assert again == record
    assert unread.reference.done()
