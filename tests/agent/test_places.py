"""Room for trials on this machine is what its pool says: a slot may be quarantined, or trials wait for one already."""

from __future__ import annotations

from agent.places import Places
from tests.support.pool_in_here import PoolInHere
from tests.support.synthetic_engine import SyntheticEngine


def test_without_a_cluster_the_pool_says_whether_there_is_room() -> None:
    class Full(PoolInHere):
        def has_room(self, num_in_flight: int, most: int) -> bool:
            return False

    assert not Places(Full(SyntheticEngine()), slots=2).has_room([])  # type: ignore[arg-type]
    assert Places(PoolInHere(SyntheticEngine()), slots=2).has_room([])  # type: ignore[arg-type]
