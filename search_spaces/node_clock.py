"""How long a modelled launch takes: seconds of each phase, without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from search_spaces.assignment import Scalar
from search_spaces.node_answers import Allowed, Answers, applies_here, holds
from search_spaces.node_parts import DurationEffect, Durations, PlantedFailure
from search_spaces.node_rungs import dummy_seconds


class Clock:
    """A node's durations, prepared for its space and facts."""

    def __init__(self, durations: Durations, answers: Answers) -> None:
        self._durations, self._answers = durations, answers
        self._effects: list[tuple[DurationEffect, Allowed]] = [
            (effect, answers.allowed(effect.when))
            for effect in durations.effects
            if applies_here(effect, answers.facts)
        ]

    def healthy(self, effective: Mapping[str, Scalar], rung: str) -> dict[str, float]:
        """Return the seconds of each phase of a launch that works, without serving."""
        if rung == "probe":
            return {str(phase): spent for phase, spent in self._durations.probe.items()}
        if rung == "dummy" and self._durations.dummy is not None:
            return {str(phase): spent for phase, spent in self._durations.dummy.items()}
        seconds: dict[str, float] = {str(phase): spent for phase, spent in self._durations.full.items()}
        for effect, allowed in self._effects:
            if holds(allowed, effective):
                before = seconds.get(effect.phase, 0.0)
                seconds[effect.phase] = max(before * (effect.times or 1.0) + (effect.plus_s or 0.0), 0.0)
        return dummy_seconds(seconds) if rung == "dummy" else seconds

    def until(self, failure: PlantedFailure, seconds: Mapping[str, float], phases: Sequence[str]) -> dict[str, float]:
        """Return the seconds of each phase of a launch that fails: whole phases before its own, and none after it."""
        before = phases[: phases.index(failure.phase)]
        spent = {name: seconds[name] for name in before if name in seconds}
        return {**spent, failure.phase: failure.seconds}

    def serving(self, rates: Sequence[float], requests: int | None, output_tokens: int | None) -> float:
        """Return the seconds of serving all levels.

        Args:
            rates: Generated tokens for each second, one a level.
            requests: Requests of each level; None: as the model has it.
            output_tokens: Tokens of each request; None: as the model has it.
        """
        if self._durations.serve_s is not None:
            return self._durations.serve_s
        tokens = (requests or self._durations.requests) * (output_tokens or self._durations.output_tokens)
        return sum(self._durations.prefill_ms / 1000 + tokens / rate for rate in rates)
