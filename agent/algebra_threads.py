"""Keeps the linear algebra of a proposal on one thread.

Its matrices have a few hundred rows. OpenBLAS would put every core of the node to work on them, where threads that wait
for each other spin: many times the processor time, taken from the engine that is measured beside it. What a sum comes
to would also hang on how many cores a node has, and with it what a study of the same seed proposes.

Only libraries that are loaded can be told (threadpoolctl 3), so NumPy is loaded first. Processes that are started
meanwhile are not told: engines take what threads they want.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_algebra_thread() -> Iterator[None]:
    """Give linear algebra one thread of this process, and afterwards as many as before."""
    import numpy  # noqa: F401 - loaded, so that it is told
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
