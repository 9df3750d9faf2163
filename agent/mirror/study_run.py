"""A study as the parent run it should be: specification, facts, best, counts, documents, probes. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from agent.mirror import schema
from agent.mirror.runs import command_line
from agent.mirror.snapshot import MetricPoint, MirroredRun, RunStatus, StudySnapshot, StudyStatus
from agent.mirror.values import flatten, metric, milliseconds, param_values, plain, pretty_json, storable, tag_values
from agent.outcome import LAUNCH_ENDS, OutcomeKind
from agent.redaction import redact_text
from agent.rungs import WORDS
from agent.store.trial import Trial

_STATUS: Mapping[StudyStatus, RunStatus] = {"running": "RUNNING", "finished": "FINISHED", "interrupted": "KILLED"}
PROBES_FILE = "probes.json"


def study_run_of(snapshot: StudySnapshot) -> MirroredRun:
    """Return the parent run of a study. It has a metric's point for each end of the study, none while it runs.

    What may change when the study goes on is a tag, or has a later step: MLflow can change neither params nor points.
    """
    best = next((trial for trial in snapshot.trials if trial.number == snapshot.best), None)
    ended_at = end_of(snapshot)
    return MirroredRun(
        key="",
        name=snapshot.study,
        status=_STATUS[snapshot.status],
        start_ms=milliseconds(snapshot.started_at),
        end_ms=milliseconds(ended_at) if ended_at else None,
        tags=_tags(snapshot, best),
        params=param_values(flatten(snapshot.spec), prefix="spec."),
        metrics=tuple(_metrics(snapshot, best)) if ended_at else (),
        texts=_texts(snapshot),
    )


def end_of(snapshot: StudySnapshot) -> datetime | None:
    """Return when the study ended, None while it runs; one that was killed ended with the last that is known of it."""
    if snapshot.status == "running":
        return None
    known = [snapshot.started_at, *(trial.closed_at or trial.started_at for trial in snapshot.trials)]
    return snapshot.ended_at or max(known, key=lambda moment: moment.timestamp())


def _tags(snapshot: StudySnapshot, best: Trial | None) -> dict[str, str]:
    tags: dict[str, object] = {
        schema.STUDY: snapshot.study,
        schema.RUN_NAME: snapshot.study,
        schema.NOTE: _note(snapshot, best),
        "verdict": snapshot.verdict,
        **{f"count.{name}": str(number) for name, number in _counts(snapshot).items()},
        **{f"fact.{name}": value for name, value in flatten(snapshot.facts).items()},
    }
    if snapshot.probes:
        tags[schema.TABLES] = json.dumps([{"path": PROBES_FILE, "type": "table"}])
    if best:
        tags |= {
            "best.trial": str(best.number),
            "best.gain": _gain(snapshot),
            "best.interval": _interval(snapshot),
            "best.command": _command(best),
        }
        tags |= {f"best.{name}": plain(value) for name, value in best.work.resolved.items()}
    return tag_values(tags)


def launches_of(tags: Mapping[str, str]) -> int:
    """Return how many launches the tags of a study's run count as closed, interrupted ones left out."""
    return sum(int(tags.get(f"count.{kind.value}", 0)) for kind in LAUNCH_ENDS if kind is not OutcomeKind.INTERRUPTED)


def _counts(snapshot: StudySnapshot) -> dict[str, int]:
    kinds = Counter(trial.outcome.kind for trial in snapshot.trials if trial.is_closed and trial.outcome)
    counts = {kind.value: kinds[kind] for kind in LAUNCH_ENDS}
    in_flight = sum(not trial.is_closed for trial in snapshot.trials)
    below = Counter(WORDS[trial.work.rung].replace(" ", "_") for trial in snapshot.probes)
    return {**counts, "in_flight": in_flight, "probes": 0, **below}


def _gain(snapshot: StudySnapshot) -> str:
    return f"{snapshot.gain:.4f}" if snapshot.gain is not None else ""


def _interval(snapshot: StudySnapshot) -> str:
    return "{:.4f} to {:.4f}".format(*snapshot.interval) if snapshot.interval is not None else ""


def _command(best: Trial) -> str:
    return command_line(best.record.argv, best.record.env) if best.record and best.record.argv else ""


def _note(snapshot: StudySnapshot, best: Trial | None) -> str:
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in _counts(snapshot).items() if number)
    head = f"Verdict: {snapshot.verdict}" if snapshot.verdict else f"The study is {snapshot.status}"
    lines = [f"**{head}**", counts]
    if best:
        gain = f", {snapshot.gain:.2f}× the baseline" if snapshot.gain is not None else ""
        gain += " ({:.2f}× to {:.2f}×)".format(*snapshot.interval) if gain and snapshot.interval else ""
        values = ", ".join(f"{name}={plain(value)}" for name, value in best.work.resolved.items())
        lines += [f"Best: trial #{best.number}{gain}", f"    {values}", f"    {_command(best)}"]
    lines.append(
        "Reasons and cures: `dead_ends.html` under Artifacts. Each trial is a run below this one (open it at +)."
    )
    return redact_text("\n\n".join(line for line in lines if line.strip()))


def _metrics(snapshot: StudySnapshot, best: Trial | None) -> list[MetricPoint]:
    value = best.outcome.value if best and best.outcome else None
    low, high = snapshot.interval or (None, None)
    ends = metric("gain_low", low) + metric("gain_high", high)
    saved_s = sum(trial.saved_s for trial in snapshot.trials)
    points = metric("gain", snapshot.gain) + ends + metric("objective", value) + metric("saved_s", saved_s)
    launches = sum(trial.counts for trial in snapshot.trials)
    return [replace(point, step=launches) for point in points]


def _texts(snapshot: StudySnapshot) -> dict[str, str]:
    texts = {name: storable(redact_text(text)) for name, text in snapshot.documents.items()}
    texts |= {"spec.json": pretty_json(snapshot.spec), "environment.json": pretty_json(snapshot.facts)}
    if snapshot.probes:
        texts[PROBES_FILE] = _table(snapshot.probes)
    return texts


def _table(probes: tuple[Trial, ...]) -> str:
    """The form that MLflow's view shows as a table: column names, then rows."""
    names = sorted({name for probe in probes for name in probe.work.resolved})
    columns = ["number", "stage", "rung", "outcome", "pass_us", "reason", "decisive_line", "wall_s", "note", *names]
    rows = [_row(probe, names) for probe in probes]
    return storable(redact_text(json.dumps({"columns": columns, "data": rows}, indent=1, ensure_ascii=False)))


def _row(probe: Trial, names: list[str]) -> list[object]:
    outcome, record, work = probe.outcome, probe.record, probe.work
    failure = outcome.failure if outcome else None
    measured = record.probe if record else None
    return [
        probe.number,
        work.stage,
        work.rung.value,
        outcome.kind.value if outcome else "",
        measured.pass_us if measured else None,
        failure.reason.value if failure else "",
        redact_text(failure.decisive.text.strip()) if failure and failure.decisive else "",
        record.wall_s if record else None,
        redact_text(outcome.note) if outcome else "",
        *(work.resolved.get(name) for name in names),
    ]
