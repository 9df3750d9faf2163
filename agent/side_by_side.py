"""Several trials at the same time on this machine: which slots there are, and whether there is room for so many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from agent.errors import NodeUnusableError, UsageError
from agent.store.manifest import Manifest
from runners import EngineSettings
from runners.engine_dialects.node import RANK_PARAMETERS
from runners.gpu_claims import GpuClaims, GpuTakenError
from runners.local_pool import LadderPool
from runners.node_layout import NodeLayout, NoLayoutError, core_layout, gpu_layout
from runners.numa_facts import numa_cpus
from runners.slot_pool import SlotPool
from runners.slot_queue import SlotQueue
from runners.slots import NodeSlots
from search_spaces import SearchSpace

OPTION = "--trials-per-node"


def ranks_of_study(space: SearchSpace, engine: EngineSettings) -> tuple[int, ...]:
    """Return the numbers of ranks that the trials of a study may have: several where its space tunes them."""
    name = next((name for name in RANK_PARAMETERS if name in space.parameters), None)
    values = space.parameters[name].domain if name else ()
    found = {value for value in values if isinstance(value, int) and not isinstance(value, bool)}
    return tuple(sorted(found)) or (engine.num_ranks,)


def node_slots(
    engine: EngineSettings, facts: Mapping[str, object], environment: Mapping[str, str], at_once: int
) -> NodeSlots:
    """Return the slots of this machine, all of them free.

    Raises:
        UsageError: so many trials have no room on it.
    """
    # A study that was begun before this was a fact is of this machine nevertheless.
    known = {**facts, "numa_cpus": facts.get("numa_cpus") or numa_cpus()}
    try:
        if engine.device == "cuda":
            layout = gpu_layout(known, environment.get("CUDA_VISIBLE_DEVICES"))
        else:
            layout = core_layout(known, at_once)
    except NoLayoutError as error:
        raise UsageError(f"{OPTION} {at_once}: {error}") from error
    return NodeSlots(layout, is_shared=at_once > 1)


def check_room(
    space: SearchSpace,
    engine: EngineSettings,
    facts: Mapping[str, object],
    environment: Mapping[str, str],
    at_once: int,
) -> None:
    """Raise UsageError where so many trials would have no slots of their own on this machine."""
    if at_once == 1:
        return
    layout = node_slots(engine, facts, environment, at_once).layout
    if engine.device == "cuda":
        _check_gpus(layout, ranks_of_study(space, engine), at_once)


def slot_words(manifest: Manifest, at_once: int) -> str:
    """Return the slots of the first trials at the same time, in words: those of the narrowest that there may be."""
    engine, ranks = manifest.settings.engine, min(ranks_of_study(manifest.space, manifest.settings.engine))
    slots, found = node_slots(engine, manifest.facts, os.environ, at_once), list[str]()
    while len(found) < at_once and (places := slots.find(ranks)) is not None:
        found.append(slots.take(places).words())
    return " | ".join(found)


def pool_of(
    space: SearchSpace,
    engine: EngineSettings,
    facts: Mapping[str, object],
    environment: Mapping[str, str],
    at_once: int,
    *,
    lost: Callable[[str], None] | None = None,
) -> LadderPool:
    """Return a local Ray for a study's trials, not started yet; `lost` ends the process when a daemon dies meanwhile.

    Where one trial runs at a time it has the whole node, but on GPUs still those that are nearest to each other.
    """
    widths = ranks_of_study(space, engine)
    num_cpus = max(os.cpu_count() or 1, max(widths) * at_once)
    if engine.node_model is not None or (at_once == 1 and engine.device != "cuda"):
        return LadderPool(num_cpus=num_cpus, lost=lost)
    try:
        slots = node_slots(engine, facts, environment, at_once)
    except UsageError:
        if at_once > 1:
            raise
        # GPUs that are named in a way not understood here: Ray's choice.
        return LadderPool(num_cpus=num_cpus, lost=lost)
    return SlotPool(SlotQueue(slots, at_once), widths, num_cpus=num_cpus, lost=lost)


@contextmanager
def gpus_held(engine: EngineSettings, facts: Mapping[str, object], environment: Mapping[str, str]) -> Iterator[None]:
    """Keep other agents of this machine off the GPUs that this one may use.

    Raises:
        NodeUnusableError: one of them has some already.
    """
    claims = GpuClaims(_identities(engine, facts, environment))
    try:
        claims.take()
    except GpuTakenError as error:
        raise NodeUnusableError(str(error)) from error
    try:
        yield
    finally:
        claims.release()


def _identities(
    engine: EngineSettings, facts: Mapping[str, object], environment: Mapping[str, str]
) -> Mapping[int, str]:
    """Return the GPUs that trials may get, and what names them; none where GPUs are named in a way not understood."""
    if engine.device != "cuda" or engine.node_model is not None:
        return {}
    try:
        places = gpu_layout(facts, environment.get("CUDA_VISIBLE_DEVICES")).places
    except NoLayoutError:
        return {}
    uuids = facts.get("gpu_uuids")
    known = dict(enumerate(uuids)) if isinstance(uuids, list | tuple) else {}
    return {place.gpu: str(known.get(place.gpu) or place.gpu) for place in places if place.gpu is not None}


def _check_gpus(layout: NodeLayout, widths: tuple[int, ...], at_once: int) -> None:
    number, fewest, most = len(layout.places), min(widths), max(widths)
    if at_once * fewest > number or most > number:
        wanted = f"{at_once} trials of {fewest} ranks" if at_once * fewest > number else f"a trial of {most} ranks"
        raise UsageError(
            f"{OPTION} {at_once}: {wanted} need{'s' * (at_once * fewest <= number)} "
            f"{max(at_once * fewest, most)} GPUs, and this node has {number}. Run fewer at the same time, or with "
            "fewer ranks (--tp)"
        )
    if not all(place.cores for place in layout.places):
        raise UsageError(
            f"{OPTION} {at_once}: this process may use fewer cores than there are GPUs, so that trials at the same "
            "time would share some. Run one after the other, or allow it more cores"
        )
