"""How long a real vLLM takes to resolve the arguments of many assignments, without one launch.

    python -m tests.benchmarks.resolve_rung ENGINE_FOLDER --number 200

ENGINE_FOLDER holds `venv` and `models`, as `make engine-env` makes them. Assignments are drawn from vLLM's whole space
on a node without a GPU, no two alike; each is answered in a forked child of one warm process. Also said: what was
refused and why, what the engine replaced, and how many of those that resolve are different launches.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from agent.classify import classify
from agent.requests import request_of
from agent.settings import StudySettings
from agent.shown import with_replaced
from agent.store.manifest import Manifest
from agent.store.trial import Kind, Trial, Work
from runners import EngineSettings, Rung, RunRecord
from runners.resolve_rung import close_resolvers
from runners.vllm_runner import VllmRunner
from search_spaces import Assignment, SearchSpace, assignment_key, load_space
from tests.engines.launches import OPTIONS, VARIABLES
from tests.support.simulated_study import LEASE, START

FACTS = {"device": "cpu", "num_ranks": 1}


def main() -> None:
    """Resolve, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", type=Path)
    parser.add_argument("--model", default="tiny", help="folder below ENGINE_FOLDER/models")
    parser.add_argument("--number", type=int, default=200)
    given = parser.parse_args()
    space = load_space("vllm")
    engine = EngineSettings(
        engine="vllm",
        num_ranks=1,
        device="cpu",
        options={**OPTIONS, "dtype": "bfloat16"},
        variables=VARIABLES,
        python=str(given.engine / "venv" / "bin" / "python"),
        model=str(given.engine / "models" / given.model),
    )
    tuned = {flag for each in space.parameters.values() for flag in each.flag_names}
    kept = {name: value for name, value in engine.options.items() if name not in tuned}
    engine = engine.model_copy(update={"options": kept})
    points = drawn(space, given.number + 1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            report(space, engine, points, Path(folder))
        finally:
            close_resolvers()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time of the warm process, its import and its children: {used.ru_utime + used.ru_stime:.1f} s")


def drawn(space: SearchSpace, number: int) -> list[Assignment]:
    """Return different assignments that break no relation, drawn at random."""
    rng, found = random.Random(0), dict[str, Assignment]()
    while len(found) < number:
        point = {name: rng.choice(each.domain) for name, each in space.parameters.items()}
        point = space.normalise(point, FACTS)
        if space.violation(point, FACTS) is None:
            found.setdefault(assignment_key(point), point)
    return list(found.values())


def report(space: SearchSpace, engine: EngineSettings, points: list[Assignment], folder: Path) -> None:
    """Resolve the assignments and print what came of them."""
    settings = StudySettings(name="resolve", engine=engine, space="vllm")
    manifest = Manifest(settings=settings, space=space, facts=FACTS, created_at=START)
    runner, seconds, records = VllmRunner(), list[float](), list[RunRecord]()
    for number, point in enumerate(points):
        work = Work(kind=Kind.PROBE, rung=Rung.RESOLVE, requested=point, resolved=point)
        trial = Trial(
            study="resolve/probes",
            number=number,
            work=work,
            cookie="c",
            lease=LEASE,
            started_at=START,
            artifact_dir=str(folder / str(number)),
        )
        started = time.monotonic()
        record = runner.run(request_of(trial, manifest, dict(os.environ)))
        seconds.append(time.monotonic() - started)
        records.append(with_replaced(record, work, space))
    rest = seconds[1:]
    print(f"first, with the import of the engine: {seconds[0]:.1f} s")
    print(
        f"{len(rest)} more: {sum(rest):.1f} s; each {statistics.median(rest):.3f} s (median), {max(rest):.3f} s (most)"
    )
    reasons = Counter(_reason(record, space) for record in records[1:])
    print("came to: " + ", ".join(f"{name} {number}" for name, number in reasons.most_common()))
    replaced = Counter(f"{p.parameter}: {p.requested} → {p.effective}" for r in records for p in r.effects)
    print("replaced: " + (", ".join(f"{name} ({number})" for name, number in replaced.most_common(8)) or "nothing"))
    prints = [record.shown.fingerprint for record in records[1:] if record.shown is not None]
    print(f"different launches among those that resolve: {len(set(prints))} of {len(prints)}")


def _reason(record: RunRecord, space: SearchSpace) -> str:
    failure = classify(record, env_names=space.flag_names | space.env_names).failure
    return "resolved" if failure is None else failure.reason.value


if __name__ == "__main__":
    main()
