"""What one drafted token adds to a step, from all assignments that were launched with and without speculation.

Every share that is thinkable is weighed by how usual it is and by how likely it makes what was seen. Launches are off
by a factor, so it is ratios that agree or not: a lucky baseline makes drafting look dear, and how dear would otherwise
be taken for how sure that is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, Any]

USUAL_SHARE, USUAL_TIMES = 0.18, 1.7
"""What one drafted token usually adds to a step, as a share of it, and the factor by which that differs (one standard
deviation): a draft model is a tenth of its target or a half, and the faster a step is, the more drafting adds to it."""
LEAST, TIMES, NUMBER = 0.02, 1.1, 42
"""Shares that are weighed: from 2 % of a step to a whole one, so many of them."""
ELSEWHERE_SD = 0.15
"""Standard deviation of a token's share, as a share of it, where it was seen beside other values."""
COMMUNICATED_SD = 1.0
"""The same beside collectives that take e times as long: each drafted token is communicated too, and where that is
slow, most of what drafting costs may be that."""
LEAST_SD = 0.01
"""Standard deviation below which no ratio of two steps is believed to be known."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an assignment's launches with and without speculation say at one concurrency."""

    slower: float
    """Logarithm of how many times longer the step with speculation is."""
    sd: float
    """Standard deviation of that, from launch to launch."""
    drafted: int
    """Tokens of a pass; at least one."""
    plain_ms: float
    """The step without speculation."""
    log_us: float = 0.0
    """Logarithm of the communication time beside it."""


@dataclass(frozen=True, slots=True)
class Token:
    """What one drafted token adds to a step."""

    share: float
    """Of a step without speculation."""
    sd: float
    plain_ms: float
    """That step, where the share was measured; 0 where it was not."""


class Tokens:
    """What is known of a token at one concurrency.

    Args:
        told: What launches say of it; nothing leaves what is usual.
    """

    def __init__(self, told: Sequence[Told] = ()) -> None:
        self._told = told
        self._known: dict[float, Token] = {}

    def beside(self, log_us: float) -> Token:
        """Return what a token adds beside collectives that take so long, as a logarithm."""
        if log_us not in self._known:
            self._known[log_us] = self._beside(log_us)
        return self._known[log_us]

    def _beside(self, log_us: float) -> Token:
        import numpy as np

        logs = self._usual + self._likely(log_us).sum(axis=0)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        share = float(weights @ self._shares)
        sd = math.sqrt(float(weights @ (self._shares - share) ** 2))
        far = [abs(each.log_us - log_us) for each in self._told]
        steps = [each.plain_ms for each, distance in zip(self._told, far, strict=True) if distance <= min(far)]
        return Token(share, math.hypot(sd, ELSEWHERE_SD * share), math.fsum(steps) / max(len(steps), 1))

    @cached_property
    def _shares(self) -> Table:
        import numpy as np

        return LEAST * TIMES ** np.arange(NUMBER)

    @cached_property
    def _usual(self) -> Table:
        import numpy as np

        usual: Table = -((np.log(self._shares / USUAL_SHARE) / math.log(USUAL_TIMES)) ** 2) / 2.0
        return usual

    def _likely(self, log_us: float) -> Table:
        """Return the logarithm of how likely each share makes what was told; (told, shares)."""
        import numpy as np

        told = [(each.slower, max(each.sd, LEAST_SD), each.drafted, each.log_us) for each in self._told]
        slower, sd, drafted, there = (column[:, None] for column in np.array(told).reshape(-1, 4).T)
        added = self._shares * drafted
        squares = sd**2 + (COMMUNICATED_SD * (there - log_us) * added / (1.0 + added)) ** 2
        likely: Table = -((slower - np.log1p(added)) ** 2) / (2.0 * squares) - np.log(squares) / 2.0
        return likely
