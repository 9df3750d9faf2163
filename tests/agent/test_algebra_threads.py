"""Linear algebra has one thread while a study is run, and as many as before afterwards."""

from __future__ import annotations

import numpy  # noqa: F401 - loaded, so that it has threads to be counted
from threadpoolctl import threadpool_info, threadpool_limits

from agent.algebra_threads import one_algebra_thread


def threads() -> list[int]:
    """Threads of each library of linear algebra that this process has loaded."""
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]


def test_it_is_one_and_then_as_many_as_before() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        assert before
        with one_algebra_thread():
            assert set(threads()) == {1}
        assert threads() == before
