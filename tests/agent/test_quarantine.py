"""A node on which a launch left something behind is given no other launch, and the user is told what to remove."""

from __future__ import annotations

from pathlib import Path

from agent.campaign import Campaign
from agent.home import Home
from agent.interruption import Interruption
from agent.recovery import own_lease
from agent.store.study_store import BUDGET
from runners import Exit, Leftovers, Measurement, Phase, RunRecord, TrialRequest
from tests.support.pool_in_here import PoolInHere
from tests.support.stores import sqlite_store
from tests.support.synthetic_engine import SyntheticEngine

LEFT = Leftovers(processes=(4711,), shared_memory=("psm_1",), ports=(8000,), gpu_memory_bytes=3 << 30)


class Careless(SyntheticEngine):
    """Every launch leaves something."""

    def run(self, request: TrialRequest) -> RunRecord:
        """End, and leave something."""
        exit_ = Exit(code=0)
        return RunRecord(
            exit=exit_, phase=Phase.STOP, wall_s=0.1, measurement=Measurement(levels=()), leftovers=LEFT, node="node-a"
        )


def test_nothing_more_is_launched_on_a_node_that_is_not_clean(tmp_path: Path) -> None:
    store, runner = sqlite_store(tmp_path), Careless()
    store.set_attribute(BUDGET, 5)
    pool = PoolInHere(runner)
    campaign = Campaign(
        store=store,
        runner=runner,
        pool=pool,  # type: ignore[arg-type]
        home=Home(tmp_path / "home"),
        lease=own_lease(),
        environment={},
        observers=(),
        interruption=Interruption(),
    )
    stop = campaign.run()
    assert pool.num_submitted == 1
    assert (stop.resumable, stop.node_unusable) == (True, True)
    assert [trial.is_closed for trial in store.trials()] == [True]
    for named in ("node-a", "process 4711", "psm_1", "port 8000", "3.0 GiB of GPU memory", "#0"):
        assert named in stop.why
