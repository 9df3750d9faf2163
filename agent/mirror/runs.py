"""A stored trial as the MLflow run it should be. Pure: no file, no clock, no MLflow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePath

from agent.mirror import schema
from agent.mirror.snapshot import MetricPoint, MirroredRun, RunStatus
from agent.mirror.values import (
    flatten,
    metric,
    milliseconds,
    param_values,
    plain,
    pretty_json,
    shorten,
    storable,
    tag_values,
)
from agent.outcome import Failure, OutcomeKind
from agent.reasons import REASONS
from agent.redaction import redact_argv, redact_mapping, redact_text, secrets_of
from agent.store.trial import Trial
from runners import LevelMeasurement, RunRecord
from search_spaces import assignment_key, changed_parameters

_STATUS: Mapping[OutcomeKind, RunStatus] = {
    OutcomeKind.MEASURED: "FINISHED",
    OutcomeKind.FAILED: "FAILED",
    OutcomeKind.SLOWER: "KILLED",
    OutcomeKind.INTERRUPTED: "KILLED",
    OutcomeKind.NOT_PROBED: "KILLED",
}
RESULT_FILE = "result.json"
"""Name of the engine's own result in the artifact folder of a trial."""
_LONGEST_NAME = 100


def run_of(trial: Trial, dead_ends: Sequence[str] = (), *, abandoned_at: datetime | None = None) -> MirroredRun:
    """Return the run of a launched trial.

    A trial that is not closed is RUNNING and has tags only; with `abandoned_at` (the study was interrupted and nobody
    runs it any more) it is KILLED at that time.
    """
    record = trial.record
    secrets = secrets_of(record.argv, record.env) if record else frozenset[str]()
    tags = {**_identity_tags(trial), **_outcome_tags(trial, dead_ends, secrets)}
    ended_at = trial.closed_at or abandoned_at
    return MirroredRun(
        key=str(trial.number),
        name=tags[schema.RUN_NAME],
        status=_status(trial, abandoned_at),
        start_ms=milliseconds(trial.started_at),
        end_ms=milliseconds(ended_at) if ended_at else None,
        tags=tags,
        params=_params(trial) if ended_at else {},
        metrics=tuple(_metrics(trial)),
        texts=_texts(trial) if ended_at else {},
        files=_files(trial),
        secrets=secrets,
    )


def command_line(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the command as one shell-quoted line, variables first, secrets masked."""
    words = [f"{name}={shlex.quote(value)}" for name, value in sorted(redact_mapping(env).items())]
    return " ".join([*words, shlex.join(redact_argv(argv))])


def _status(trial: Trial, abandoned_at: datetime | None) -> RunStatus:
    if not trial.is_closed:
        return "KILLED" if abandoned_at else "RUNNING"
    return _STATUS[trial.outcome.kind] if trial.outcome else "KILLED"


def _identity_tags(trial: Trial) -> dict[str, str]:
    work = trial.work
    return tag_values(
        {
            schema.STUDY: trial.study,
            schema.TRIAL: str(trial.number),
            schema.RUN_NAME: _name(trial),
            "kind": work.kind.value,
            "stage": work.stage,
            "rung": work.rung.value,
            "assignment": assignment_key(work.resolved),
            "epoch": str(trial.epoch) if trial.epoch else None,
        }
    )


def _name(trial: Trial) -> str:
    work = trial.work
    changed = changed_parameters(work.resolved, work.base) if work.base else ()
    values = " ".join(f"{name}={plain(work.resolved[name])}" for name in changed)
    repeat = f" ×{work.repeat + 1}" if work.repeat else ""
    failure = trial.outcome.failure if trial.outcome else None
    what = failure.reason.value if failure is not None else f"{work.kind.value}{repeat}"  # in sight on any screen
    return shorten(redact_text(f"#{trial.number} {what} {values}".strip()), _LONGEST_NAME)


def _outcome_tags(trial: Trial, dead_ends: Sequence[str], secrets: frozenset[str]) -> dict[str, str]:
    outcome, record = trial.outcome, trial.record
    tags: dict[str, object] = {
        "outcome": outcome.kind.value if outcome else None,
        "phase": record.phase.value if record else None,
        "node": record.node if record else None,
        "dead_end": ", ".join(dead_ends),
        "refutes": ", ".join(found.id for found in outcome.refutes) if outcome else "",
        schema.NOTE: _note(trial, secrets),
    }
    if outcome and outcome.failure:
        tags.update(_failure_tags(outcome.failure, trial.facts))
    return tag_values(tags, secrets)


def _failure_tags(failure: Failure, facts: Mapping[str, object]) -> dict[str, object]:
    return {
        "reason": failure.reason.value,
        "phase": failure.phase.value,
        "rule": failure.rule,
        "blames": ", ".join(failure.blames),
        "decisive_line": shorten(_decisive_line(failure), schema.MAX_LINE),
        **{f"scope.{name}": facts[name] for name in failure.facts if name in facts},
    }


def _decisive_line(failure: Failure) -> str:
    return f"{failure.decisive.number}: {failure.decisive.text.strip()}" if failure.decisive else ""


def _note(trial: Trial, secrets: frozenset[str]) -> str:
    """The run's description in MLflow's view: what happened, the line that shows it, what helps."""
    outcome = trial.outcome
    if outcome is None:
        return ""
    parts = [f"**{outcome.kind.value}**" + (f": {outcome.note}" if outcome.note else "")]
    if outcome.failure:
        failure = outcome.failure
        line = shorten(_decisive_line(failure), schema.MAX_LINE)
        parts = [f"**{failure.reason.value}** in {failure.phase.value}. {REASONS[failure.reason].meaning}", *parts[1:]]
        # Indented by four, the line is code to Markdown: nothing in it can close a fence or become a link.
        parts += [f"    {line}"] if line else []
        parts += [f"Cure: {failure.cure}"] if failure.cure else []
    return redact_text("\n\n".join(parts), secrets)


def _params(trial: Trial) -> dict[str, str]:
    work = trial.work
    requested = {name: value for name, value in work.requested.items() if work.resolved.get(name) != value}
    return {**param_values(work.resolved), **param_values(requested, prefix="requested.")}


def _metrics(trial: Trial) -> list[MetricPoint]:
    record, outcome = trial.record, trial.outcome
    if not trial.is_closed:
        return []
    points = metric("objective", outcome.value) if outcome and trial.is_measured else []
    points += metric("output_agreement", outcome.output.agreement) if outcome and outcome.output else []
    if record is None:
        return points
    for name, figure in outcome.figures.items() if outcome else ():
        points += metric(f"goal.{name}", figure)
    points += metric("wall_s", record.wall_s)
    points += metric("partial_objective", outcome.value) if outcome and trial.is_slower else []
    points += metric("saved_s", trial.saved_s) if trial.saved_s else []
    for phase, seconds in record.phase_s.items():
        points += metric(f"phase_s.{phase.value}", seconds)
    return points + _measured(record)


def _measured(record: RunRecord) -> list[MetricPoint]:
    measurement = record.measurement
    if measurement is None:
        return []
    points = metric("collective_us_per_call", measurement.collective_us_per_call)
    for name, value in measurement.extra.items():
        points += metric(f"extra.{name}", value)
    for level in measurement.levels:
        points += _level(level)
    if measurement.levels:
        lowest = min(measurement.levels, key=lambda level: level.concurrency)
        for position, value in enumerate(lowest.acceptance_per_position, start=1):
            points += metric("acceptance_at_position", value, position)
    return points


def _level(level: LevelMeasurement) -> list[MetricPoint]:
    values = {
        "output_tok_per_s": level.output_tok_per_s,
        "ttft_ms_p50": level.ttft_ms.p50,
        "ttft_ms_p99": level.ttft_ms.p99,
        "tpot_ms_p50": level.tpot_ms.p50,
        "tpot_ms_p99": level.tpot_ms.p99,
        "step_ms_p50": level.step_ms_p50,
        "verify_steps_per_s": level.verify_steps_per_s,
        "acceptance_length": level.acceptance_length,
        "e2e_ms_p50": level.e2e_ms.p50 if level.e2e_ms else None,
        "e2e_ms_p99": level.e2e_ms.p99 if level.e2e_ms else None,
        "requests_per_s": level.requests_per_s,
        "goodput_tok_per_s": level.goodput.output_tok_per_s if level.goodput else None,
        "goodput_req_per_s": level.goodput.requests_per_s if level.goodput else None,
        "dropped_s": level.dropped_s or None,
    }
    return [point for name, value in values.items() for point in metric(name, value, level.concurrency)]


def _texts(trial: Trial) -> dict[str, str]:
    record = trial.record
    texts = {"environment.json": pretty_json(flatten(trial.facts))}
    if record and record.argv:
        argv, env = redact_argv(record.argv), redact_mapping(record.env)
        texts["command.txt"] = storable(command_line(record.argv, record.env)) + "\n"
        texts["command.json"] = storable(pretty_json({"argv": list(argv), "env": env}))
    return texts


def _files(trial: Trial) -> dict[str, str]:
    record = trial.record
    if record is None:
        return {}
    paths = {"log.txt": record.log_path, "stacks.txt": record.stacks_path}
    if trial.artifact_dir and record.measurement:
        paths[RESULT_FILE] = str(PurePath(trial.artifact_dir) / RESULT_FILE)
    return {name: path for name, path in paths.items() if path}
