"""What a search found, for a program or a notebook: `agent.search(...)` returns it."""

from __future__ import annotations

import html
from dataclasses import dataclass

from agent.deadends.dead_end import DeadEnd
from agent.deadends.documents import as_html
from agent.report import headline, reproduce_command
from agent.session import Ended
from agent.store.trial import Trial
from agent.summary import Arm, StudySummary, summarise
from search_spaces import Assignment


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search. A notebook shows it as headline, command and map."""

    ended: Ended

    @property
    def why(self) -> str:
        """Why the search ended, in words."""
        return self.ended.stop.why

    @property
    def summary(self) -> StudySummary:
        """The study in figures: budget, outcomes, gain, verdict."""
        return summarise(self.ended.history, self.ended.manifest.settings.name, self.ended.ruled_out)

    @property
    def best(self) -> Assignment | None:
        """The best configuration, parameter → value; None where nothing was measured."""
        arm = self._best_arm
        return dict(arm.assignment) if arm is not None else None

    @property
    def gain(self) -> float | None:
        """Best objective divided by the baseline's; None where one is missing."""
        return self.summary.gain

    @property
    def verdict(self) -> str:
        """`gain`, `no gain` or `not separable within the budget`; empty where nothing can be compared."""
        return self.summary.verdict

    @property
    def dead_ends(self) -> tuple[DeadEnd, ...]:
        """The map: what cannot work on this node, and why."""
        return tuple(self.summary.atlas.dead_ends)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every launch, in order."""
        return tuple(self.ended.history.trials)

    @property
    def command(self) -> str:
        """The shell line that repeats the best, without secrets; empty where nothing was measured."""
        arm = self._best_arm
        if arm is None:
            return ""
        return reproduce_command(self.ended.history.runner, arm.first, self.ended.manifest)

    @property
    def _best_arm(self) -> Arm | None:
        return self.summary.best

    def __str__(self) -> str:
        return "\n".join([f"{self.summary.study}: {self.why}", *headline(self.summary)])

    def _repr_html_(self) -> str:
        """Return what a notebook shows; text of logs is escaped."""
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in headline(self.summary))
        command = f"<pre>{html.escape(self.command)}</pre>" if self.command else ""
        page = as_html(self.dead_ends, f"Dead ends of study {self.summary.study}")
        return f"<ul>{lines}</ul>{command}<details><summary>map</summary>{page[page.index('<h1>') :]}</details>"
