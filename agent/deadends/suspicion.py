"""What is not explained yet: a failure with what may have caused it."""

from __future__ import annotations

from dataclasses import dataclass

from agent.deadends.evidence import Failed
from agent.deadends.explain import Explanation
from agent.deadends.lacks import Lack
from agent.deadends.rivals import Rival


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A failure that is not explained yet."""

    failed: Failed
    explanations: tuple[Explanation, ...]
    is_repeated: bool
    """Whether it failed often enough not to be chance."""
    rivals: tuple[Rival, ...] = ()
    """Where chance is in the way of a cause that is clear otherwise."""
    lacks: tuple[Lack, ...] = ()
    """What a cause that is clear otherwise may lack, if chance made what fails without it."""
    is_rare: bool = False
    """Whether it failed too rarely to exclude chance for all of its failures together."""

    @property
    def is_clear(self) -> bool:
        """True when only chance is left to exclude."""
        return bool(self.rivals or self.lacks)

    @property
    def best(self) -> Explanation:
        """The likeliest explanation."""
        return self.explanations[0]

    @property
    def is_likely_chance(self) -> bool:
        """True when chance is likelier than all explanations together."""
        return sum(each.share for each in self.explanations) < 0.5
