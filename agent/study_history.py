"""A stored study as the proposer and every reader see it."""

from __future__ import annotations

from agent.deadends.atlas import Atlas
from agent.propose.history import History
from agent.store.study_store import StudyStore
from agent.wishes import Wishes
from runners import Runner


def history_of(store: StudyStore, runner: Runner, atlas: Atlas, wishes: Wishes, epoch: int = -1) -> History:
    """Return a stored study as the proposer and every reader see it: one epoch of it, by default the latest."""
    number = epoch % len(store.epochs)
    probes, checks = store.parted_probes_of(number)
    return History(
        settings=store.manifest.settings,
        space=store.manifest.space,
        facts=store.epochs[number].facts,
        runner=runner,
        trials=store.trials_of(number),
        probes=probes,
        checks=checks,
        earlier=sum(trial.counts and trial.epoch < number for trial in store.trials()) if number else 0,
        atlas=atlas,
        budget=wishes.budget,
        asked=wishes.asked,
        rechecks=wishes.rechecks,
        known_spread=store.manifest.spread,
    )
