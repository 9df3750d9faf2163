"""A stored study as a table that the replay engine answers from: `python -m agent.recorded STUDY > table.jsonl`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.home import Home
from agent.outcome import Failure
from agent.store.manifest import Manifest
from agent.store.study_store import StudyStore
from agent.store.trial import Trial
from runners import Rung, RunRecord
from search_spaces.node_parts import PlantedExit
from search_spaces.node_table import RecordedFailure, RecordedLevel, RecordedTrial, TableHead


def recorded_lines(manifest: Manifest, trials: Iterable[Trial]) -> Iterator[str]:
    """Yield the lines of a study's table: its space and facts, then every closed trial that says something."""
    space = manifest.space.model_dump(mode="json", by_alias=True)
    facts = {name: value for name, value in manifest.facts.items() if name != "hostname"}
    about = f"recorded by study {manifest.settings.name}"
    yield TableHead(node=manifest.settings.name, about=about, space=space, facts=facts).model_dump_json()
    for trial in trials:
        is_whole = trial.counts and not trial.is_slower  # what was stopped early measured a part of its load
        if is_whole and trial.record is not None and trial.outcome is not None:
            yield _recorded(trial, trial.record, trial.outcome.failure).model_dump_json(exclude_defaults=True)


def _recorded(trial: Trial, record: RunRecord, failure: Failure | None) -> RecordedTrial:
    levels = record.measurement.levels if record.measurement and failure is None else ()
    return RecordedTrial.model_validate(
        {
            "assignment": trial.work.resolved,
            "rung": "probe" if trial.work.rung is Rung.PROBE else "full",
            "seconds": record.wall_s,
            "phase_s": {phase.value: spent for phase, spent in record.phase_s.items()},
            "levels": [
                RecordedLevel(
                    concurrency=level.concurrency,
                    tok_per_s=level.output_tok_per_s,
                    acceptance_length=max(level.acceptance_length, 1.0),
                )
                for level in levels
            ],
            "pass_us": record.probe.pass_us if record.probe else None,
            "calls_per_pass": record.probe.calls_per_pass if record.probe else 1.0,
            "failure": None if failure is None else _failure(record, failure),
        }
    )


def _failure(record: RunRecord, failure: Failure) -> RecordedFailure:
    """Return the failure with the end of its log; the last line of a modelled launch is written anew by a replay."""
    lines = [line.text for line in record.excerpt if not line.text.startswith("[replay]")]
    decisive = failure.decisive.text if failure.decisive else ""
    if decisive and decisive not in lines and not decisive.startswith("[replay]"):
        lines.insert(0, decisive)
    causes = {"deadline", "no_progress", "decisive_line"}
    cause = record.exit.cause if record.exit.cause in causes else "exited"
    end = {"code": record.exit.code, "signal": record.exit.signal, "cause": cause}
    return RecordedFailure.model_validate(
        {
            "reason": failure.reason.value,
            "phase": failure.phase.value,
            "log": lines,
            "exit": PlantedExit.model_validate(end),
            "blames": failure.blames,
        }
    )


def _probes(store: StudyStore) -> list[Trial]:
    """A table knows probes and launches only."""
    probes, _ = store.parted_probes_of()
    return list(probes)


def main() -> None:
    """Print the table of a stored study (by default the last one)."""
    from agent.studies import open_study

    parser = argparse.ArgumentParser(description="Print a stored study as a recorded table for --engine replay.")
    parser.add_argument("study", nargs="?")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--storage")
    given = parser.parse_args()
    store, _ = open_study(Home.find(str(given.home) if given.home else None), given.study, given.storage)
    for line in recorded_lines(store.manifest, (*store.trials_of(), *_probes(store))):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
