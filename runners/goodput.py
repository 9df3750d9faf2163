"""What part of a level's rate meets its service level objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from runners.frozen import Frozen

EACH = 100.0
"""Percentile of a limit that every single request has to keep."""

LimitedFigure = Literal["ttft_ms", "tpot_ms", "e2e_ms"]


class Limit(Frozen):
    """One limit of a service level objective."""

    figure: LimitedFigure
    """Time to the first token, time per token after it, or time to the end of the answer; milliseconds."""
    percentile: float = Field(default=EACH, gt=0, le=100)
    """How many per cent of a level's requests have to be within the limit; 100: each request for itself."""
    at_most: float = Field(gt=0)

    @property
    def name(self) -> str:
        """The limit's name: `ttft_ms.p99`, or `ttft_ms` for a limit of each request."""
        return self.figure if self.percentile == EACH else f"{self.figure}.p{self.percentile:g}"


@dataclass(frozen=True, slots=True)
class Answered:
    """One request that was served whole."""

    ttft_ms: float
    tpot_ms: float
    e2e_ms: float
    output_tokens: int


class Goodput(Frozen):
    """The part of a level's rate that counts."""

    requests_per_s: float
    output_tok_per_s: float
    within: Mapping[str, float]
    """Name of a limit → share of the requests that are within it."""


def goodput_of(requests: Sequence[Answered], wall_s: float, limits: Sequence[Limit]) -> Goodput | None:
    """Return what of a level counts, or None without limits.

    A request beyond a limit of each request does not count. Where a limit at a percentile is broken, too few requests
    are within it, and the level counts by how far it falls short: with 90 % within where 99 % have to be, as 90/99.
    """
    if not limits or not requests:
        return None
    within = {limit.name: _share(requests, limit) for limit in limits}
    single = [limit for limit in limits if limit.percentile == EACH]
    good = [each for each in requests if all(_is_within(each, limit) for limit in single)]
    kept = [min(1.0, within[limit.name] / (limit.percentile / 100)) for limit in limits if limit.percentile != EACH]
    scale = min(kept, default=1.0) / wall_s
    return Goodput(
        requests_per_s=len(good) * scale,
        output_tok_per_s=sum(each.output_tokens for each in good) * scale,
        within=within,
    )


def _is_within(request: Answered, limit: Limit) -> bool:
    return float(getattr(request, limit.figure)) <= limit.at_most


def _share(requests: Sequence[Answered], limit: Limit) -> float:
    return sum(_is_within(request, limit) for request in requests) / len(requests)
