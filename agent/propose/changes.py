"""The single changes of an assignment, as the engine runs them: what a search looks at next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agent.effects import rewritten
from agent.propose.history import History
from agent.propose.points import points_of
from agent.propose.prepared import kept, replaced_values
from search_spaces import Assignment


@dataclass(frozen=True)
class Changes:
    """Changes of assignments in the space of a study."""

    history: History

    def of(self, start: Assignment) -> dict[str, Assignment]:
        """Return the single changes of an assignment.

        A value that gives other parameters a meaning (a way to draft and its length) comes with each of theirs as well:
        whether it is worth anything may hang on them.
        """
        return kept(self.history, f"single changes {self._replaced}", str(start), lambda: self._changed(start))

    def _changed(self, start: Assignment) -> dict[str, Assignment]:
        space, points, found = self.history.space, points_of(self.history), {}
        for name in space.parameters:
            hanging = self.hanging.get(name, ())
            for change in space.single_changes(start, (name,)):
                point = self._as_it_runs(change)
                found[points.of(point).key] = point
                gained = tuple(other for other in hanging if self._gains(point, start, other))
                further = map(self._as_it_runs, space.single_changes(point, gained))
                found |= {points.of(each).key: each for each in further}
        return found

    def _gains(self, point: Assignment, start: Assignment, name: str) -> bool:
        """Return whether a parameter has a meaning beside the values of one assignment and not of the other."""
        parameter, facts = self.history.space.parameters[name], self.history.facts
        return parameter.is_active(point, facts) and not parameter.is_active(start, facts)

    @cached_property
    def hanging(self) -> dict[str, list[str]]:
        """Parameter → those that have a meaning only beside some of its values."""
        found: dict[str, list[str]] = {}
        for name, each in self.history.space.parameters.items():
            for other in each.active_when:
                found.setdefault(other, []).append(name)
        return found

    @cached_property
    def _replaced(self) -> str:
        return replaced_values(self.history)

    def _as_it_runs(self, candidate: Assignment) -> Assignment:
        """Return a candidate without what the engine was seen to replace: a value that does nothing is no new value."""
        space, facts = self.history.space, self.history.facts
        point, replaced = rewritten(space.normalise(candidate, facts), self.history.silent_rewrites)
        return space.normalise(point, facts) if replaced else point
