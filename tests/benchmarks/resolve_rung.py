"""How long a real engine takes to resolve the arguments of many assignments, without one launch.

    python -m tests.benchmarks.resolve_rung ENGINE_FOLDER --number 200
    python -m tests.benchmarks.resolve_rung --sglang PYTHON --model TARGET --draft DRAFT

ENGINE_FOLDER holds vLLM's `venv` and `models`, as `make engine-env` makes them; PYTHON is one that imports SGLang, for
two ranks. Assignments are drawn from the engine's whole space on a node without a GPU, no two alike; each is answered
in a forked child of one warm process. Also said: what was refused and why, a line of each kind of refusal, what the
engine replaced, and how many of those that resolve are different launches.
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
from agent.outcome import Failure
from agent.requests import request_of
from agent.settings import StudySettings
from agent.shown import with_replaced
from agent.store.manifest import Manifest
from agent.store.trial import Kind, Trial, Work
from runners import EngineSettings, Rung, RunRecord
from runners.resolve_rung import close_resolvers
from runners.sglang_runner import SglangRunner
from runners.vllm_runner import VllmRunner
from search_spaces import Assignment, Facts, SearchSpace, assignment_key, load_space
from tests.engines.launches import OPTIONS, VARIABLES
from tests.support.simulated_study import LEASE, START

MOST_LINES, LINE_WIDTH = 40, 160


def main() -> None:
    """Resolve, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", type=Path, nargs="?", help="vLLM's folder")
    parser.add_argument("--sglang", help="Python that imports SGLang")
    parser.add_argument("--model", default="tiny", help="folder below ENGINE_FOLDER/models, or SGLang's target model")
    parser.add_argument("--draft", help="SGLang's draft model")
    parser.add_argument("--number", type=int, default=200)
    given = parser.parse_args()
    if (given.engine is None) == (given.sglang is None):
        parser.error("name vLLM's ENGINE_FOLDER or --sglang PYTHON")
    engine = _vllm(given.engine, given.model) if given.engine else _sglang(given.sglang, given.model, given.draft)
    space = load_space(engine.engine)
    tuned = {flag for each in space.parameters.values() for flag in each.flag_names}
    kept = {name: value for name, value in engine.options.items() if name not in tuned}
    engine = engine.model_copy(update={"options": kept})
    points = drawn(space, {"device": "cpu", "num_ranks": engine.num_ranks}, given.number + 1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            report(space, engine, points, Path(folder))
        finally:
            close_resolvers()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time of the warm process, its import and its children: {used.ru_utime + used.ru_stime:.1f} s")


def _vllm(folder: Path, model: str) -> EngineSettings:
    return EngineSettings(
        engine="vllm",
        num_ranks=1,
        device="cpu",
        options={**OPTIONS, "dtype": "bfloat16"},
        variables=VARIABLES,
        python=str(folder / "venv" / "bin" / "python"),
        model=str(folder / "models" / model),
    )


def _sglang(python: str, model: str, draft: str | None) -> EngineSettings:
    return EngineSettings(engine="sglang", num_ranks=2, device="cpu", python=python, model=model, draft_model=draft)


def drawn(space: SearchSpace, facts: Facts, number: int) -> list[Assignment]:
    """Return different assignments that break no relation, drawn at random."""
    rng, found = random.Random(0), dict[str, Assignment]()
    while len(found) < number:
        point = {name: rng.choice(each.domain) for name, each in space.parameters.items()}
        point = space.normalise(point, facts)
        if space.violation(point, facts) is None:
            found.setdefault(assignment_key(point), point)
    return list(found.values())


def report(space: SearchSpace, engine: EngineSettings, points: list[Assignment], folder: Path) -> None:
    """Resolve the assignments and print what came of them."""
    settings = StudySettings(name="resolve", engine=engine, space=engine.engine)
    facts = {"device": engine.device, "num_ranks": engine.num_ranks}
    manifest = Manifest(settings=settings, space=space, facts=facts, created_at=START)
    runner = VllmRunner() if engine.engine == "vllm" else SglangRunner()
    seconds, records = list[float](), list[RunRecord]()
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
    refusals = [_refusal(record, space) for record in records[1:]]
    reasons = Counter("resolved" if refusal is None else refusal.reason.value for refusal in refusals)
    print("came to: " + ", ".join(f"{name} {number}" for name, number in reasons.most_common()))
    lines = Counter((each.reason.value, each.rule, _told(each)) for each in refusals if each is not None)
    for (reason, rule, line), number in lines.most_common(MOST_LINES):
        print(f"  {number:4} {reason} ({rule}): {line}")
    replaced = Counter(f"{p.parameter}: {p.requested} → {p.effective}" for r in records for p in r.effects)
    print("replaced: " + (", ".join(f"{name} ({number})" for name, number in replaced.most_common(8)) or "nothing"))
    prints = [record.shown.fingerprint for record in records[1:] if record.shown is not None]
    print(f"different launches among those that resolve: {len(set(prints))} of {len(prints)}")


def _refusal(record: RunRecord, space: SearchSpace) -> Failure | None:
    return classify(record, env_names=space.flag_names | space.env_names).failure


def _told(failure: Failure) -> str:
    return failure.decisive.text[:LINE_WIDTH] if failure.decisive else ""


if __name__ == "__main__":
    main()
