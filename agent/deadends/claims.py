"""What each rung claims to find, which parameters it can tell apart, and of which other rungs a pass there speaks."""

from __future__ import annotations

from collections.abc import Mapping

from agent.deadends.phases import PHASE_ORDER
from agent.outcome import Failure
from agent.reasons import Reason
from runners import Phase, Rung
from search_spaces import SearchSpace

RUNG_ORDER = {rung: index for index, rung in enumerate(Rung)}
OF_ARGUMENTS = frozenset(
    {Reason.CONFIG_INVALID, Reason.MISSING_DEPENDENCY, Reason.UNSUPPORTED_ARCH, Reason.DRAFT_MISMATCH}
)
OF_COLLECTIVES = frozenset(
    {
        Reason.UNSUPPORTED_ARCH,
        Reason.TOPOLOGY_UNSUPPORTED,
        Reason.CUDA_GRAPH_INCOMPATIBLE,
        Reason.JIT_COMPILE_ERROR,
        Reason.MISSING_DEPENDENCY,
        Reason.KERNEL_ERROR,
        Reason.COLLECTIVE_ERROR,
        Reason.COLLECTIVE_TIMEOUT,
    }
)
OF_THE_ENGINE = OF_ARGUMENTS | OF_COLLECTIVES | {Reason.ASSERTION, Reason.SERVER_HANG, Reason.PROCESS_KILLED}
"""Few layers of made-up weights say nothing about memory, output, weights and acceptance."""
CLAIMS: Mapping[Rung, frozenset[Reason]] = {
    Rung.RESOLVE: OF_ARGUMENTS,
    Rung.PROBE: OF_COLLECTIVES,
    Rung.DUMMY: OF_THE_ENGINE,
    Rung.FULL: frozenset(Reason),
}
LAST_PHASE: Mapping[Rung, Phase] = {
    Rung.RESOLVE: Phase.SPAWN,
    Rung.PROBE: Phase.WARMUP,
    Rung.DUMMY: Phase.WARMUP,
    Rung.FULL: Phase.STOP,
}
"""How far a launch at a rung comes: arguments are resolved before a server says that it begins; then one completion."""
OF_WEIGHTS = (Reason.DRAFT_MISMATCH, Phase.LOAD_WEIGHTS)
"""A draft whose weights do not fit: made-up ones always do."""


def claims(rung: Rung, failure: Failure) -> bool:
    """Return whether a rung claims to find such a failure: its reason, in the phase in which it struck."""
    if rung is Rung.DUMMY and (failure.reason, failure.phase) == OF_WEIGHTS:
        return False
    return failure.reason in CLAIMS[rung] and PHASE_ORDER[failure.phase] <= PHASE_ORDER[LAST_PHASE[rung]]


def reaches(seen: Rung, rung: Rung) -> bool:
    """Return whether what passes at a rung passes what strikes at another one.

    The dearer rungs do all that the cheaper ones do, but for a probe: it runs without the engine and its arguments.
    """
    return RUNG_ORDER[rung] <= RUNG_ORDER[seen] and (seen, rung) != (Rung.PROBE, Rung.RESOLVE)


def visible_at(rung: Rung, space: SearchSpace) -> tuple[str, ...]:
    """Return the parameters that a rung can tell apart; the others have no bearing on what is seen there.

    Arguments are options, and the engine's own variables; those of other libraries are not looked at.
    """
    if rung is Rung.PROBE:
        return space.probe_parameters
    if rung is not Rung.RESOLVE:
        return tuple(space.parameters)
    prefix = space.engine.upper() + "_"
    return tuple(
        name
        for name, each in space.parameters.items()
        if each.flag_names or any(variable.startswith(prefix) for variable in each.env_names)
    )
