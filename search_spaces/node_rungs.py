"""The dummy rung of a modelled node: what such a launch costs, and which failures it shows.

A dummy launch is the engine with made-up weights and few layers: it comes as far as one completion and serves no load.
Its seconds follow from those of a full launch, unless the model gives them, by what was recorded: SGLang 0.5.16 with
made-up weights of 16 layers on two H200 needed 0.1 s for the weights, 1 s for the memory pool, 8.5 s for fifty prefill
graphs, and as long as any launch for everything before; that few layers are captured in a third of the time is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.node_parts import PHASES, PlantedFailure

LOAD_S, COMPLETION_S = 1.0, 1.0
"""Making up the weights of few layers, and serving one completion."""
CAPTURE_SHARE = 0.3
"""Time to capture few layers, as a share of that for all of them."""
ENDS_BEFORE = "ready"
"""The first phase that a dummy launch does not come to: one completion is all that is asked of it."""
NOT_SHOWN = frozenset({"gpu_oom", "host_oom", "wrong_output", "model_load"})
"""Reasons that hang on the real weights or on their size."""
OF_WEIGHTS = frozenset({"draft_mismatch"})
"""Reasons that hang on the weights where they strike while these are loaded."""


def dummy_seconds(full: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each phase of a dummy launch, from those of a full one."""
    seconds = {phase: spent for phase, spent in full.items() if phase not in ("ready", "serve")}
    if "load_weights" in seconds:
        seconds["load_weights"] = min(LOAD_S, seconds["load_weights"])
    if "capture_graphs" in seconds:
        seconds["capture_graphs"] *= CAPTURE_SHARE
    seconds["warmup"] = seconds.get("warmup", 0.0) + COMPLETION_S
    return seconds


def shows_at(failure: PlantedFailure, rung: str) -> bool:
    """Return whether a launch at a rung (probe, dummy or full) shows a planted failure."""
    if rung == "full":
        return True
    if rung == "probe" or failure.rung == "full":
        return failure.rung == rung
    if failure.rung == "dummy":
        return True
    return _strikes_without_weights(failure)


def _strikes_without_weights(failure: PlantedFailure) -> bool:
    if PHASES.index(failure.phase) >= PHASES.index(ENDS_BEFORE) or failure.reason in NOT_SHOWN:
        return False
    return not (failure.phase == "load_weights" and failure.reason in OF_WEIGHTS)
