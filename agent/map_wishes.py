"""What the user wishes about the map: to check a dead end again, or to forget one. Stored here, done by the agent."""

from __future__ import annotations

from agent.absent import check_present
from agent.deadends.dead_end import DeadEnd
from agent.errors import UsageError
from agent.propose.rechecks import RECHECKED, num_rechecks, recheck_rung
from agent.reading import Reading
from agent.store.study_store import BUDGET, FORGOTTEN, RECHECKS
from agent.wishes import read_wishes
from runners import Rung
from search_spaces import nearest


def recheck(reading: Reading, wanted: str | None) -> list[str]:
    """Queue a re-check of one dead end, or of all that are confirmed or stale; return what to tell the user.

    A launch that the budget has no room for makes it grow by one; probes cost none of it.

    Raises:
        UsageError: when there is no such dead end, none that could be checked again, or nothing to check it with.
    """
    history, store = reading.history, reading.store
    check_present(history.runner)
    chosen = [_one(reading, wanted)] if wanted is not None else list(history.atlas.in_state(*RECHECKED))
    for found in chosen:
        if found.state not in RECHECKED:
            raise UsageError(
                f"{found.id} is {found.state.value}: only confirmed and stale dead ends can be checked again"
            )
    if not chosen:
        raise UsageError(f"study {store.name} has no confirmed or stale dead end")
    rungs = {found.id: recheck_rung(history, found) for found in chosen}
    targets = {found.id: num_rechecks(history, found) + 1 for found in chosen}
    store.set_attribute(RECHECKS, {**history.rechecks, **targets})
    launches = sum(rung is Rung.FULL for rung in rungs.values())
    missing = history.spent + launches - history.budget
    if launches and missing > 0:
        store.set_attribute(BUDGET, history.budget + missing)
    told = [f"queued for {store.name}: {found.id} ({found}), as a {_word(rungs[found.id])}" for found in chosen]
    return [*told, f"a running agent does it next; otherwise: {reading.again}"]


def _word(rung: Rung) -> str:
    return "probe" if rung is Rung.PROBE else "launch"


def forget(reading: Reading, ids: tuple[str, ...]) -> list[str]:
    """Take dead ends off the map, with the trials that they rest on; return what to tell the user.

    Raises:
        UsageError: when there is no such dead end.
    """
    store = reading.store
    chosen = [_one(reading, wanted) for wanted in ids]
    known = _forgotten(reading)
    labels = {found.id: list(dict.fromkeys([*known.get(found.id, ()), *found.support])) for found in chosen}
    store.set_attribute(FORGOTTEN, {**known, **labels})
    undo = "take it back with: agent deadends forget"
    return [f"forgotten: {found.id} ({found}); {undo} {found.id} --undo" for found in chosen]


def remember(reading: Reading, ids: tuple[str, ...]) -> list[str]:
    """Let forgotten dead ends count again; return what to tell the user.

    Raises:
        UsageError: when one is not forgotten.
    """
    known = _forgotten(reading)
    for wanted in ids:
        if wanted not in known:
            forgotten = f"Forgotten are: {', '.join(known)}" if known else "Nothing is forgotten"
            raise UsageError(f"{wanted} is not forgotten. {forgotten}")
    reading.store.set_attribute(FORGOTTEN, {found: labels for found, labels in known.items() if found not in ids})
    return [f"counts again: {wanted}" for wanted in ids]


def _forgotten(reading: Reading) -> dict[str, list[str]]:
    return {found: list(labels) for found, labels in read_wishes(reading.store).forgotten.items()}


def _one(reading: Reading, wanted: str) -> DeadEnd:
    found = reading.history.atlas.find(wanted)
    if found is None:
        known = [each.id for each in reading.history.atlas.dead_ends]
        hint = nearest(wanted, known) if known else "Its map is empty."
        raise UsageError(f"no dead end {wanted} in study {reading.store.name}. {hint}")
    return found
