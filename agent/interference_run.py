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
from agent.spec import StudySpec
from agent.studies import engine_settings, node_facts
from runners import EngineSettings, Rung, RunRecord, TrialRequest, Workload
from runners.registry import make_runner
from search_spaces import load_space

SEED = 0
AT_ONCE = 2


def run_interference_test(spec: StudySpec, home: Home, rounds: int = ROUNDS) -> Interference:
    """Measure, keep and return what a neighbour does to a trial of the torch engine on this node.

    Raises:
        UsageError: two trials of so many ranks have no room here.
        NodeUnusableError: a launch measured nothing.
    """
    home.create()
    facts = node_facts(spec)
    settings = engine_settings(spec, facts, None, None)
    visible = gpus_of(settings, facts, os.environ)
    folder, count = folder_of(home), iter(range(10**6))

    def launch(number: int) -> list[float]:
        requests = [
            request_of_test(settings, facts, folder / str(next(count)), {**os.environ, **visible[place]})
            for place in range(number)
        ]
        return objectives(run_together(requests))

    alone, beside = measure(launch, SEED, rounds)
    node, moment = str(facts.get("hostname") or socket.gethostname()), datetime.now(UTC)
    found = interference(node, settings.device, settings.num_ranks, moment, alone, beside)
    remember(home, found)
    return found


def gpus_of(
    settings: EngineSettings, facts: Mapping[str, object], environment: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the variables that give each of two launches its own GPUs; none on a CPU.

    Raises:
        UsageError: there are too few.
    """
    if settings.device != "cuda":
        return [{}] * AT_ONCE
    given = environment.get("CUDA_VISIBLE_DEVICES")
    ids = given.split(",") if given else [str(number) for number in range(int(str(facts.get("gpu_count") or 0)))]
    ranks = settings.num_ranks
    if len(ids) < AT_ONCE * ranks:
        raise UsageError(
            f"--interference: two trials of {ranks} ranks need {AT_ONCE * ranks} GPUs, this node shows {len(ids)}: "
            f"give fewer ranks with --tp, or run trials one after the other"
        )
    parts = (ids[place * ranks : (place + 1) * ranks] for place in range(AT_ONCE))
    return [{"CUDA_VISIBLE_DEVICES": ",".join(part)} for part in parts]


def request_of_test(
    settings: EngineSettings, facts: Mapping[str, object], folder: Path, environment: Mapping[str, str]
) -> TrialRequest:
    """Return the request for a launch of the engine's default."""
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
        environment=environment,
        artifact_dir=str(folder),
    )


def run_together(requests: list[TrialRequest]) -> list[RunRecord]:
    """Run launches at the same time, each from a process of its own, and return their records in order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(requests), mp_context=context) as pool:
        answers = pool.map(_run, [request.model_dump_json() for request in requests])
        return [RunRecord.model_validate_json(answer) for answer in answers]


def _run(request: str) -> str:
    return make_runner("torch").run(TrialRequest.model_validate_json(request)).model_dump_json()


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
