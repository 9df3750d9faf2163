"""What the report shows as tables: every launch and probe, the map as a picture, and what node time went into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.documents import scope_words
from agent.deadends.observation import trial_label
from agent.redaction import redact_text
from agent.report_words import command_line
from agent.saved import FailureTimes, map_saved_s
from agent.savings import Counts
from agent.store.trial import Trial
from agent.summary import StudySummary

DECISIVE_CHARS = 300
MOST_CONDITIONS = 4
"""Conditions of a dead end that are shown as columns of the picture."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One launch or probe."""

    label: str
    kind: str
    rung: str
    changes: str
    outcome: str
    value: float | None
    """Output tokens per second of a launch, microseconds of a verify pass for a probe."""
    reason: str
    phase: str
    seconds: float
    decisive: str
    cure: str
    command: str


@dataclass(frozen=True, slots=True)
class MapRow:
    """One dead end: its conditions under the parameters they are about."""

    found: DeadEnd
    cells: tuple[str, ...]
    """For each column of the picture: the condition on that parameter, or nothing; empty where there are too many."""
    scope: str
    escapes: tuple[str, ...]
    saved_s: float


def trial_rows(trials: Sequence[Trial], summary: StudySummary, num_commands: int) -> list[TrialRow]:
    """Return a row for each closed trial. The first `num_commands` that ran a process carry their command."""
    rows, carried = [], 0
    for trial in trials:
        if trial.outcome is not None:
            with_command = carried < num_commands
            row = _trial_row(trial, summary, with_command)
            carried += bool(row.command)
            rows.append(row)
    return rows


def _trial_row(trial: Trial, summary: StudySummary, with_command: bool) -> TrialRow:
    outcome, record = trial.outcome, trial.record
    failure = outcome.failure if outcome else None
    line = failure.decisive.text.strip() if failure and failure.decisive else ""
    command = command_line(record.argv, record.env) if with_command and record and record.argv else ""
    return TrialRow(
        label=trial_label(trial),
        kind=trial.work.kind.value,
        rung=trial.work.rung.value,
        changes=summary.changes(trial.work.resolved),
        outcome=outcome.kind.value if outcome else "",
        value=outcome.value if outcome else None,
        reason=failure.reason.value if failure else "",
        phase=failure.phase.value if failure else "",
        seconds=record.wall_s if record else 0.0,
        decisive=redact_text(line)[:DECISIVE_CHARS],
        cure=failure.cure if failure else "",
        command=command,
    )


def map_columns(dead_ends: Sequence[DeadEnd]) -> list[str]:
    """Return the parameters that dead ends of few conditions name, most often named first.

    What is flaky is one launch with all its values: these would fill the picture and show nothing.
    """
    few = (found for found in dead_ends if len(found.conditions) <= MOST_CONDITIONS)
    named = [condition.parameter for found in few for condition in found.conditions]
    return sorted(dict.fromkeys(named), key=lambda name: (-named.count(name), name))


def map_rows(dead_ends: Sequence[DeadEnd], ruled_out: Counts, times: FailureTimes) -> list[MapRow]:
    """Return the map, surest first: what blocks, then what is suspected, then what is only history.

    Args:
        dead_ends: The map.
        ruled_out: What each dead end ruled out.
        times: How long failures take in this study.
    """
    order = list(DeadEndState)
    order.sort(key=lambda state: state is not DeadEndState.CONFIRMED)
    found = sorted(dead_ends, key=lambda each: (order.index(each.state), each.reason.value, str(each)))
    columns = map_columns(found)
    return [
        MapRow(
            found=each,
            cells=tuple(_cell(each, name) for name in columns) if len(each.conditions) <= MOST_CONDITIONS else (),
            scope=scope_words(each),
            escapes=tuple(map(str, each.escapes)),
            saved_s=map_saved_s(each, ruled_out.get(each.id, {}), times),
        )
        for each in found
    ]


def by_reason(unproven: Mapping[str, str]) -> dict[str, list[str]]:
    """Return why nobody can tell → the parameters whose effect is not proven for that reason."""
    found: dict[str, list[str]] = {}
    for name, why in unproven.items():
        found.setdefault(why, []).append(name)
    return found


def _cell(found: DeadEnd, parameter: str) -> str:
    texts = [str(condition) for condition in found.conditions if condition.parameter == parameter]
    return " ∧ ".join(text.removeprefix(parameter).strip() for text in texts)
