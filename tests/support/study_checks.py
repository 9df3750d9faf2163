"""What must be true of a stored study, however often it was killed: read from the storage alone."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agent.deadends.charter import chart
from agent.home import Home
from agent.propose.model_based import Sampler
from agent.propose.order import Launches, propose
from agent.reading import read_study
from agent.store.study_store import StudyStore
from agent.store.trial import Lease, Trial
from agent.study_history import history_of
from agent.wishes import read_wishes
from runners import Rung
from runners.registry import make_runner


def problems_of(home: Path, budget: int | None, *, is_serial: bool = True) -> list[str]:
    """Return what is wrong with a study that is over: lost, doubled or open trials, another budget, other proposals.

    What is proposed while others run hangs on when those end: only a study of one slot is asked for its proposals.
    """
    store = read_study(Home.find(str(home)), None, None).store
    trials = (*store.trials(), *store.probes())
    counted = [trial for trial in store.trials() if trial.counts]
    found = [f"trial {trial.study}/{trial.number} is open" for trial in trials if not trial.is_closed]
    if budget is not None and len(counted) != budget:
        found.append(f"{len(counted)} launches count, of a budget of {budget}")
    for study in (store.trials(), store.probes()):
        if [trial.number for trial in study] != list(range(len(study))):
            found.append(f"numbers have gaps: {[trial.number for trial in study]}")
        # Of what runs at the same time, several may turn out to run as the same: only what was asked for is unique.
        names = (trial.work.identity if is_serial else trial.work.asked_identity for trial in study if trial.counts)
        identities = Counter(names)
        found += [f"{identity} was closed {number} times" for identity, number in identities.items() if number > 1]
    found += [f"#{trial.number} has no evidence" for trial in counted if trial.record is None]
    return found + integrity_problems(home) + (other_proposals(store) if is_serial else [])


def integrity_problems(home: Path) -> list[str]:
    """Return what SQLite's own check says against the databases of a state folder."""
    found = []
    for name in ("study.db", "mlflow.db"):
        path = home / name
        if path.exists():
            with sqlite3.connect(path) as connection:
                (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
            connection.close()
            found += [] if answer == "ok" else [f"{name}: {answer}"]
    return found


def other_proposals(store: StudyStore) -> list[str]:
    """Ask the proposer again at every moment of the study: it must propose what was run (one slot is assumed).

    What was closed when a trial was opened decides, so a study that was killed anywhere and an uninterrupted one with
    the same completion order must give the same.
    """
    found = []
    groups = _groups((*store.trials(), *store.probes()))
    sampler = Sampler(store.manifest.space)
    for index, group in enumerate(groups):
        closed = [trial for earlier in groups[:index] for trial in earlier]
        proposal = _proposal(store, closed, sampler, group[0].lease)
        asked = [work.asked_identity for work in proposal.works] if isinstance(proposal, Launches) else [str(proposal)]
        ran = [trial.work.asked_identity for trial in group]
        if ran != asked[: len(ran)]:  # an agent that dies while it opens a batch leaves the first part of it
            found.append(f"{group[0].study}/{group[0].number}: ran {ran}, but the proposer says {asked}")
    return found


def _proposal(store: StudyStore, closed: Sequence[Trial], sampler: Sampler, owner: Lease | None) -> object:
    manifest = store.manifest
    trials = tuple(trial for trial in closed if trial.study == store.name)
    companion = tuple(trial for trial in closed if trial.study != store.name)
    probes = tuple(trial for trial in companion if trial.work.rung is Rung.PROBE)
    checks = tuple(trial for trial in companion if trial.work.rung is not Rung.PROBE)
    atlas = chart(trials, companion, manifest.space, manifest.facts, manifest.inherited)
    whole = history_of(store, make_runner(manifest.settings.engine.engine), atlas, read_wishes(store))
    from dataclasses import replace

    # What stopped an agent does not stop the next one: the history is that of the agent which proposed.
    return propose(replace(whole, trials=trials, probes=probes, checks=checks, owner=owner), sampler)


def _groups(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Return what was opened together (it has one cookie), oldest first."""
    groups: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.started_at, trial.number)):
        groups.setdefault(trial.cookie, []).append(trial)
    return list(groups.values())
