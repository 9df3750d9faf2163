"""What every full trial of a study is asked to serve."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runners.frozen import Frozen
from runners.goodput import Limit

BuiltIn = Literal["chat", "code", "long-context"]
"""Names of the built-in workloads; `runners/load_client/lengths.py` has their lengths and where those come from."""


class Workload(Frozen):
    """What every full trial of a study is asked to serve; equal for all of them, or the numbers cannot be compared."""

    concurrency: tuple[int, ...] = (1, 8)
    """Requests in flight, one level after the other, in the order of `levels`."""
    first: int | None = Field(default=None, ge=1)
    """The level that is measured before the others: the one that the objective is about. None: it is about all."""
    prompt_tokens: int | None = None
    """Prompt length in tokens; None leaves it to the engine's preset."""
    output_tokens: int | None = None
    """Tokens generated for each request; None leaves it to the engine's preset."""
    requests: int | None = None
    """Requests for each level; None leaves it to the engine's preset."""
    seed: int = 0
    """Seed of the prompts, and of the times at which they arrive."""
    lengths: BuiltIn | None = None
    """Built-in workload that the lengths of prompts and answers are drawn from; None: they are all alike."""
    dataset: str | None = None
    """Absolute path of a JSONL file of prompts, the same on every node; None: token ids are drawn."""
    dataset_sha256: str | None = None
    """Digest of that file when the study began."""
    arrival_per_s: float | None = Field(default=None, gt=0)
    """Requests that arrive in a second, at random (Poisson), whatever is in flight; then the level is the most that may
    be in flight. None: as many as the level says are always in flight."""
    slo: tuple[Limit, ...] = ()
    """Limits that a request or a level has to keep for its rate to count."""

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels in the order in which they are measured: the one that decides first, then the highest first.

        A higher level serves the same requests in less time, so what is clearly slower shows itself sooner.
        """
        return tuple(sorted(set(self.concurrency), key=lambda level: (level != self.first, -level)))
