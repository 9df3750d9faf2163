"""The rungs of an engine under the settings of a study."""

from __future__ import annotations

from runners.contract import EngineSettings, Rung, Runner


def rungs_of(runner: Runner, settings: EngineSettings) -> tuple[Rung, ...]:
    """Return the rungs that a runner has, cheapest first; one whose rungs hang on the settings says so itself."""
    asked = getattr(runner, "rungs_for", None)
    found: tuple[Rung, ...] = asked(settings) if asked is not None else runner.rungs
    return tuple(rung for rung in Rung if rung in found)
