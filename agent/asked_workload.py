"""The workload and the objective of a study, checked against each other and against what its engine can serve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from agent.goals import OUTPUT, Goal, goal_of
from agent.spec import StudySpec
from runners import Workload
from runners.goodput import EACH, Limit, LimitedFigure
from runners.load_client.prompts import DatasetError, digest_of, read_dataset
from runners.workload import BuiltIn
from search_spaces import nearest

OWN_PROMPTS = ("torch", "replay")
"""Engines that make their own prompts, of one length, and keep a fixed number of them in flight."""
OPEN_LOOP_LEVEL = 256
"""Most requests in flight where requests arrive by themselves and the study does not say."""
BUILT_IN: tuple[str, ...] = get_args(BuiltIn)
LIMITED: tuple[str, ...] = get_args(LimitedFigure)
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")


def asked_workload(spec: StudySpec, goals: tuple[Goal, ...]) -> Workload:
    """Return what every full trial of a study serves.

    Raises:
        UsageError, SpecificationError: what is wrong and what to do.
    """
    for key in ("workload", "arrival_rate"):
        if spec.engine in OWN_PROMPTS and getattr(spec, key) is not None:
            problem = (
                f"the {spec.engine} engine makes its own prompts and keeps a fixed number in flight: leave it away"
            )
            raise spec.error(f"{problem}, or search a server", key)
    levels = spec.concurrency
    if spec.arrival_rate is not None:
        levels = (OPEN_LOOP_LEVEL,) if levels == StudySpec().concurrency else levels
        if len(levels) != 1:
            raise spec.error("with arrival_rate name one level: the most requests in flight", "concurrency")
    first = goals[0].level if len(goals) == 1 else None
    return Workload(
        concurrency=levels,
        first=first,
        prompt_tokens=spec.prompt_tokens,
        output_tokens=spec.output_tokens,
        requests=spec.requests,
        seed=spec.seed,
        arrival_per_s=spec.arrival_rate,
        slo=tuple(_limits(spec)),
        **_prompts(spec),
    )


def asked_goals(spec: StudySpec) -> tuple[Goal, ...]:
    """Return what a study searches for: by default goodput where it has limits, and output tokens per second else.

    Raises:
        UsageError, SpecificationError: what is wrong and what to do.
    """
    written = (spec.objective,) if isinstance(spec.objective, str) else spec.objective
    if not written:
        return (Goal(figure="goodput_tok_per_s"),) if spec.slo else (OUTPUT,)
    try:
        goals = tuple(goal_of(each) for each in written)
    except ValueError as error:
        raise spec.error(str(error), "objective") from error
    for goal in goals:
        if goal.level is not None and goal.level not in spec.concurrency:
            raise spec.error(f"{goal.name}: {goal.level} is none of the levels of concurrency", "objective")
        if goal.figure.startswith("goodput") and not spec.slo:
            raise spec.error(f"{goal.name} needs limits: add slo, such as `ttft_ms: {{p99: 500}}`", "objective")
    if len(set(goals)) != len(goals):
        raise spec.error("one goal is named twice", "objective")
    if len(goals) == 1:
        _check_alone(spec, goals[0])
    return goals


def _check_alone(spec: StudySpec, goal: Goal) -> None:
    if goal.is_latency:
        problem = (
            f"{goal.name} alone is best with an engine that serves nobody: name a rate beside it, or a limit in slo"
        )
        raise spec.error(problem, "objective")
    if spec.slo and not goal.figure.startswith("goodput"):
        problem = f"{goal.name} alone does not heed slo: write goodput_tok_per_s, or name several objectives"
        raise spec.error(problem, "objective")


def _prompts(spec: StudySpec) -> dict[str, Any]:
    if spec.workload is None:
        return {}
    for key in ("prompt_tokens", "output_tokens"):
        if spec.workload in BUILT_IN and getattr(spec, key) is not None:
            raise spec.error(f"the workload {spec.workload} has lengths of its own: leave it away", key)
    if spec.workload in BUILT_IN:
        return {"lengths": spec.workload}
    path = Path(spec.workload).expanduser().resolve()
    if not path.is_file():
        known = f"{nearest(spec.workload, BUILT_IN)} Otherwise give a JSONL file that exists"
        raise spec.error(f"'{spec.workload}' is neither a built-in workload nor a file. {known}", "workload")
    try:
        read_dataset(path, output_tokens=1)
        return {"dataset": str(path), "dataset_sha256": digest_of(path)}
    except DatasetError as error:
        raise spec.error(str(error), "workload") from error


def _limits(spec: StudySpec) -> Iterator[Limit]:
    for figure, written in spec.slo.items():
        if figure not in LIMITED:
            raise spec.error(f"is no limit. {nearest(figure, LIMITED)}", "slo", figure)
        for name, at_most in (written if not isinstance(written, float) else {"": written}).items():
            match = _PERCENTILE.fullmatch(name)
            if name and (match is None or not 0 < float(match[1]) <= EACH):
                raise spec.error(f"'{name}' is no percentile: write p50, p99 or p99.9", "slo", figure)
            if at_most <= 0:
                raise spec.error(f"{at_most:g} is no limit: milliseconds above 0", "slo", figure)
            percentile = float(match[1]) if match else EACH
            yield Limit.model_validate({"figure": figure, "percentile": percentile, "at_most": at_most})
