"""What every full trial of a study is asked to serve."""

from __future__ import annotations

from pydantic import Field

from runners.frozen import Frozen


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
    """Seed of the prompts."""

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels in the order in which they are measured: the one that decides first, then the highest first.

        A higher level serves the same requests in less time, so what is clearly slower shows itself sooner.
        """
        return tuple(sorted(set(self.concurrency), key=lambda level: (level != self.first, -level)))
