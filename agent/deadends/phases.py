"""The phases of a launch in their order."""

from __future__ import annotations

from runners import Phase

PHASE_ORDER = {phase: index for index, phase in enumerate(Phase)}
