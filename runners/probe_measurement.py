"""What a probe of the collectives measured."""

from __future__ import annotations

from runners.frozen import Frozen


class ProbedCall(Frozen):
    """One collective at one size in one mode, as a probe saw it."""

    op: str
    bytes: int
    """Bytes of the tensor that each rank passes in."""
    mode: str
    """`eager` or `graph`."""
    us_p50: float
    us_p10: float
    us_p90: float
    by: str = ""
    """What summed, where the operation is a sum: a backend may leave large messages to another."""


class ProbeMeasurement(Frozen):
    """What a probe measured: the collectives of a verify pass, without the model around them."""

    pass_us: float
    """Communication time of one verify pass at the lowest concurrency level, in microseconds. For a server with a
    draft model, with that of the draft's passes before it."""
    calls_per_pass: float
    calls: tuple[ProbedCall, ...] = ()
    backend: str = ""
    """What summed, with the version of its package where it comes from one."""
    software: str = ""
    """Versions of torch and NCCL, and the Python that holds them."""
