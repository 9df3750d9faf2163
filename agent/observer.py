"""Who is told what happens in a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent.propose.history import History
from agent.store.trial import Trial


class Observer(Protocol):
    """Who is told what happens: the live view and the mirror. None of them may steer."""

    def trials_opened(self, trials: Sequence[Trial]) -> None:
        """Trials were stored as running and handed out."""

    def trial_closed(self, trial: Trial, history: History) -> None:
        """A trial was closed; `history` is the study with it."""

    def tick(self) -> None:
        """Called a few times a second while waiting."""
