"""The table of `agent probe`: collectives by message size, best first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.deadends.observation import trial_label
from agent.node_probe import COLLECTIVE, Candidate, Probed, found_in, label
from agent.store.trial import Trial
from runners import ProbedCall
from search_spaces import Assignment
from search_spaces.switches import spelled


class RowState(StrEnum):
    """What became of one point of the table."""

    WORKS = "works"
    REPLACED = "replaced"
    """It works, but the engine runs something else in its place."""
    FAILED = "failed"
    NOT_PROBED = "not probed"
    NOT_REACHED = "not reached"
    """The time was up, or somebody interrupted."""
    RULED_OUT = "ruled out"
    """The engine would refuse it."""


ORDER = {state: index for index, state in enumerate(RowState)}


@dataclass(frozen=True, slots=True)
class Row:
    """One point of the table."""

    values: Assignment
    state: RowState
    why: str = ""
    """Reason of a failure, what replaces it, or why it was not probed."""
    trial: Trial | None = None

    @property
    def pass_us(self) -> float | None:
        """Communication time of a verify pass in microseconds, where it works."""
        outcome = self.trial.outcome if self.trial else None
        return outcome.value if outcome else None

    @property
    def calls(self) -> tuple[ProbedCall, ...]:
        """What was timed."""
        record = self.trial.record if self.trial else None
        return record.probe.calls if record and record.probe else ()

    @property
    def name(self) -> str:
        """What the row is about, in words."""
        words = [
            spelled(value) if name == COLLECTIVE else f"{name}={spelled(value)}" for name, value in self.values.items()
        ]
        return " ".join(words) or "default"


def rows_of(probed: Probed) -> list[Row]:
    """Return the rows of the table: what works, least communication time first; then the rest."""
    rows = [_row(probed, candidate) for candidate in probed.candidates]
    return sorted(rows, key=lambda row: (ORDER[row.state], row.pass_us or 0.0))


def _row(probed: Probed, candidate: Candidate) -> Row:
    values, trial = label(candidate, probed.history), found_in(probed, candidate)
    if candidate.work is None:
        return Row(values, RowState.RULED_OUT, candidate.why)
    if trial is None or trial.outcome is None:
        return Row(values, RowState.NOT_REACHED)
    if trial.is_not_probed:
        return Row(values, RowState.NOT_PROBED, trial.outcome.note, trial)
    failure = trial.outcome.failure
    if failure is not None:
        line = f": {failure.decisive.text.strip()}" if failure.decisive else ""
        return Row(values, RowState.FAILED, f"{failure.reason.value}{line}", trial)
    rewrites = (*candidate.work.rewrites, *trial.work.rewrites)
    if rewrites:
        said = dict.fromkeys(f"runs {each.parameter}={spelled(each.resolved)}: {each.why}" for each in rewrites)
        return Row(values, RowState.REPLACED, "; ".join(said), trial)
    return Row(values, RowState.WORKS, _backend(trial), trial)


def _backend(trial: Trial) -> str:
    return trial.record.probe.backend if trial.record and trial.record.probe else ""


def sizes_of(rows: Sequence[Row]) -> list[int]:
    """Return the sizes of the sums that were timed, in bytes, least first."""
    return sorted({call.bytes for row in rows for call in row.calls if call.op == "all_reduce"})


def software_of(rows: Sequence[Row]) -> list[str]:
    """Return what carried the probes out."""
    probes = (row.trial.record.probe for row in rows if row.trial and row.trial.record)
    return list(dict.fromkeys(probe.software for probe in probes if probe and probe.software))


def as_json(probed: Probed, rows: Sequence[Row]) -> dict[str, object]:
    """Return everything of the table for a program; the keys are those of the page of the command line."""
    settings = probed.history.settings.engine
    return {
        "study": probed.study,
        "engine": settings.engine,
        "device": settings.device,
        "ranks": settings.num_ranks,
        "seconds": round(probed.seconds, 1),
        "ended": probed.stop.why,
        "software": software_of(rows),
        "rows": [
            {
                "values": dict(row.values),
                "state": row.state.value,
                "why": row.why,
                "pass_us": row.pass_us,
                "reason": _reason(row),
                "trial": trial_label(row.trial) if row.trial else None,
                "seconds": round(row.trial.record.wall_s, 2) if row.trial and row.trial.record else None,
                "calls": [call.model_dump() for call in row.calls],
            }
            for row in rows
        ],
    }


def _reason(row: Row) -> str | None:
    failure = row.trial.outcome.failure if row.trial and row.trial.outcome else None
    return failure.reason.value if failure else None
