"""The schedule for people and programs: sentences, a table, JSON, and the commands that run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from agent.report_words import command_line
from agent.requests import request_of
from agent.schedule import Cell, LevelSchedule, Schedule
from agent.store.manifest import Manifest
from runners import Runner
from runners.engine_dialects import EngineNotUsableError, OptionNotInVersionError
from runners.engine_dialects.schedules import engine_schedule


@dataclass(frozen=True, slots=True)
class ScheduleCommands:
    """How to run a schedule."""

    by_concurrency: Mapping[int, str]
    """Concurrency → the command of a server for that load."""
    whole: str = ""
    """One command for all of them, in the engine's own form; empty where there is none."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the command refers to: name → text."""
    why_none: str = ""
    """Why there is no such command."""


def schedule_commands(schedule: Schedule, runner: Runner, manifest: Manifest) -> ScheduleCommands:
    """Return the commands; each concurrency has its own where the engine takes one length for all."""
    requests = {drafted: request_of(trial, manifest, environment={}) for drafted, trial in schedule.members.items()}
    each: dict[int, str] = {}
    try:
        for concurrency, drafted in schedule.lengths.items():
            command = runner.command(requests[drafted])
            each[concurrency] = command_line(command.argv, command.env)
        if len(set(schedule.lengths.values())) < 2:
            return ScheduleCommands(each, next(iter(each.values()), ""))
        longest = requests[max(schedule.lengths.values())]
        version = str(manifest.facts.get("engine_version", ""))
        form = engine_schedule(manifest.settings.engine.engine, version, schedule.lengths, longest.options)
        if form.why_none:
            return ScheduleCommands(each, why_none=form.why_none)
        command = runner.command(longest.model_copy(update={"options": {**longest.options, **form.options}}))
    except (EngineNotUsableError, OptionNotInVersionError) as error:
        return ScheduleCommands(each, why_none=str(error))
    return ScheduleCommands(each, command_line(command.argv, command.env), form.files)


def schedule_lines(schedule: Schedule) -> list[str]:
    """Return one line for each concurrency: what to draft, what it brings, and what speculation would need."""
    return [f"concurrency {level.concurrency}: {_answer(level)}" for level in schedule.levels]


def schedule_table(schedule: Schedule) -> str:
    """Return all cells as a Markdown table."""
    header = (
        "concurrency",
        "drafted",
        "tok/s",
        "interval",
        "ms a pass",
        "tokens a pass",
        "accepted at 1, 2, …",
        "trials",
    )
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for level in schedule.levels:
        for cell in level.cells:
            mark = " **best**" if cell.drafted == level.drafted else ""
            cells = (
                str(level.concurrency),
                f"{cell.drafted}{mark}",
                f"{cell.tok_per_s:.1f}",
                _interval(cell),
                f"{cell.step_ms:.2f}",
                f"{cell.acceptance_length:.2f}",
                " ".join(f"{share:.2f}" for share in cell.acceptance_per_position) or "–",
                " ".join(f"#{number}" for number in cell.trials),
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def schedule_markdown(schedule: Schedule, commands: ScheduleCommands) -> str:
    """Return the whole answer as Markdown."""
    lines = [*(f"- {line}" for line in schedule_lines(schedule)), "", schedule_table(schedule), ""]
    if commands.whole:
        lines += ["One command for all of it:", "", f"    {commands.whole}", ""]
        for name, text in commands.files.items():
            lines += [f"with the file `{name}`:", "", *(f"    {line}" for line in text.splitlines()), ""]
    else:
        lines += [f"No single command: {commands.why_none}.", ""]
        for concurrency, command in commands.by_concurrency.items():
            lines += [f"For concurrency {concurrency}:", "", f"    {command}", ""]
    return "\n".join(lines)


def schedule_json(schedule: Schedule, commands: ScheduleCommands | None = None) -> dict[str, object]:
    """Return the schedule with everything behind it as JSON values; an end that is not known is null."""
    levels = [
        {
            "concurrency": level.concurrency,
            "draft_length": level.drafted,
            "sure": level.is_sure,
            "gain": _gain(level),
            "break_even": None if level.break_even is None else asdict(level.break_even),
            "cells": [{**asdict(cell), **_ends(cell)} for cell in level.cells],
        }
        for level in schedule.levels
    ]
    return {"levels": levels, "commands": None if commands is None else asdict(commands)}


def _gain(level: LevelSchedule) -> dict[str, object] | None:
    found = level.comparison
    if found is None:
        return None
    return {"ratio": found.ratio, "low": found.low, "high": found.high, "verdict": found.verdict.value}


def _ends(cell: Cell) -> dict[str, float | None]:
    return {"low": cell.low, "high": cell.high} if _is_known(cell) else {"low": None, "high": None}


def _is_known(cell: Cell) -> bool:
    return cell.low > 0.0 and cell.high < 1e300


def _interval(cell: Cell) -> str:
    return f"{cell.low:.1f} to {cell.high:.1f}" if _is_known(cell) else "unknown"


def _answer(level: LevelSchedule) -> str:
    best = next(cell for cell in level.cells if cell.drafted == level.drafted)
    what = f"draft {best.drafted} tokens" if best.drafted else "no speculation"
    parts = [f"{what}, {best.tok_per_s:.1f} tok/s"]
    if (found := level.comparison) is not None:
        top = level.break_even.drafted if level.break_even is not None else best.drafted
        of = "" if top == best.drafted else f"with {top} tokens "
        doubt = "" if level.is_sure else ", not told apart"
        parts.append(f"{of}{found.ratio:.2f}× without ({found.low:.2f}× to {found.high:.2f}×{doubt})")
    if (even := level.break_even) is not None:
        parts.append(
            f"speculation needs {even.needed_acceptance:.2f} tokens a pass, it has {even.acceptance:.2f} "
            f"(a pass with {even.drafted} drafted takes {even.step_ms:.2f} ms; up to {even.affordable_ms:.2f} ms pays)"
        )
        if even.pays != bool(best.drafted):
            parts.append("passes alone say the opposite of the tok/s, which count prefill and what lies between passes")
    return "; ".join(parts)
