"""The launches of the interference test: the torch engine, alone and twice at the same time."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import socket
import statistics
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from agent.errors import NodeUnusableError, UsageError
from agent.home import Home
from agent.interference import ROUNDS, Interference, folder_of, interference, measure, remember
from agent.requests import DEADLINES
from agent.side_by_side import gpus_held, node_slots
from agent.spec import StudySpec
from agent.studies import engine_settings, node_facts
from runners import EngineSettings, Rung, RunRecord, TrialRequest, Workload
from runners.registry import make_runner
from runners.slot import Slot
from runners.slot_binding import bound, slot_environment
from search_spaces import load_space

SEED = 0
LEAST = 2


def run_interference_test(spec: StudySpec, home: Home, rounds: int = ROUNDS) -> Interference:
    """Measure, keep and return what neighbours do to a trial of the torch engine on this node.

    Each launch has a slot, as trials side by side will: alone it is on the first one, and the others are empty.

    Raises:
        UsageError: so many trials of so many ranks have no room here.
        NodeUnusableError: a launch measured nothing, or another agent of this machine has its GPUs.
    """
    home.create()
    facts = node_facts(spec)
    settings = engine_settings(spec, facts, None, None)
    slots = slots_of_test(settings, facts, os.environ, max(LEAST, spec.trials_per_node))
    folder, count = folder_of(home), iter(range(10**6))

    def launch(number: int) -> list[float]:
        requests = [
            request_of_test(settings, facts, folder / str(next(count)), os.environ, slot) for slot in slots[:number]
        ]
        return objectives(run_together(requests))

    with gpus_held(settings, facts, os.environ):
        alone, beside = measure(launch, SEED, rounds, len(slots))
    node, moment = str(facts.get("hostname") or socket.gethostname()), datetime.now(UTC)
    found = interference(node, settings.device, settings.num_ranks, moment, alone, beside)
    remember(home, found)
    return found


def slots_of_test(
    settings: EngineSettings, facts: Mapping[str, object], environment: Mapping[str, str], at_once: int
) -> list[Slot]:
    """Return a slot for each of the launches side by side.

    Raises:
        UsageError: there is no room for them.
    """
    slots = node_slots(settings, facts, environment, at_once)
    found: list[Slot] = []
    for _ in range(at_once):
        if (places := slots.find(settings.num_ranks)) is None:
            raise UsageError(
                f"--interference: {at_once} trials of {settings.num_ranks} ranks need {at_once * settings.num_ranks} "
                f"GPUs, this node shows {len(slots.layout.places)}: "
                f"give fewer ranks with --tp, or run trials one after the other"
            )
        found.append(slots.take(places))
    return found


def request_of_test(
    settings: EngineSettings, facts: Mapping[str, object], folder: Path, environment: Mapping[str, str], slot: Slot
) -> TrialRequest:
    """Return the request for a launch of the engine's default on a slot."""
    space = load_space("torch")
    assignment = space.normalise(space.default_on(facts), facts)
    return TrialRequest(
        study="interference",
        trial=0,
        rung=Rung.FULL,
        settings=settings,
        assignment=assignment,
        options=space.options(assignment),
        variables=space.environment(assignment),
        workload=Workload(),
        deadlines=DEADLINES,
        cookie=secrets.token_hex(16),
        environment=slot_environment(slot, environment),
        artifact_dir=str(folder),
        slot=slot,
    )


def run_together(requests: list[TrialRequest]) -> list[RunRecord]:
    """Run launches at the same time, each from a process of its own, and return their records in order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(requests), mp_context=context) as pool:
        answers = pool.map(_run, [request.model_dump_json() for request in requests])
        return [RunRecord.model_validate_json(answer) for answer in answers]


def _run(request: str) -> str:
    asked = TrialRequest.model_validate_json(request)
    with bound(asked.slot):
        return make_runner("torch").run(asked).model_dump_json()


def objectives(records: list[RunRecord]) -> list[float]:
    """Return the objective of each launch.

    Raises:
        NodeUnusableError: one measured nothing.
    """
    measured = [record.measurement for record in records if record.measurement is not None]
    if len(measured) < len(records):
        lost = next(record for record in records if record.measurement is None)
        raise NodeUnusableError(
            f"--interference: a launch of the torch engine ended in {lost.phase.value} and measured nothing; its log: "
            f"{lost.log_path}. See what the engine can use here: agent doctor --engine torch"
        )
    return [statistics.geometric_mean(level.output_tok_per_s for level in each.levels) for each in measured]
