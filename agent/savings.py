"""What the map ruled out: launches and probes that the search would have made, had it not known that they fail.

Counted is, for each proposal, the candidate that the search preferred to what it then ran and that the map ruled out,
each assignment once. What that is in node time: `agent.saved`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.propose.history import Refusal
from runners import Rung

Counts = Mapping[str, Mapping[str, int]]
"""Id of a dead end → rung → how many candidates it ruled out."""


@dataclass
class Savings:
    """A tally that goes on where an earlier agent left it."""

    before: Counts
    _seen: set[tuple[Rung, str]] = field(default_factory=set)
    _counted: Counter[tuple[str, Rung]] = field(default_factory=Counter)

    def note(self, refusals: Iterable[Refusal], launched: int) -> bool:
        """Count the first `launched` candidates of a proposal that were ruled out; return whether any was new."""
        fresh: dict[tuple[Rung, str], Refusal] = {}
        for refusal in refusals:
            if (refusal.rung, refusal.key) not in self._seen:
                fresh.setdefault((refusal.rung, refusal.key), refusal)
        counted = list(fresh.values())[:launched]
        for refusal in counted:
            self._seen.add((refusal.rung, refusal.key))
            self._counted[refusal.dead_end, refusal.rung] += 1
        return bool(counted)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the tally as it is stored."""
        total = {found: dict(rungs) for found, rungs in self.before.items()}
        for (found, rung), number in self._counted.items():
            rungs = total.setdefault(found, {})
            rungs[rung.value] = rungs.get(rung.value, 0) + number
        return total
