"""The end of a study in words: the best configuration, its gain, the command that repeats it, and the map."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agent.deadends.documents import as_html, as_json, as_markdown
from agent.deadends.observation import trial_label
from agent.effects import contradictions
from agent.front import mean_figures
from agent.goals import in_words
from agent.node_time import node_time_markdown
from agent.progress import spoken
from agent.report_words import command_line
from agent.requests import request_of
from agent.rungs import cost_words
from agent.schedule_report import ScheduleCommands, schedule_json, schedule_lines, schedule_markdown
from agent.store.manifest import Manifest
from agent.store.trial import Trial
from agent.summary import Arm, FrontArm, StudySummary
from runners import Runner
from runners.engine_dialects import EngineNotUsableError

BEST = "best: "
"""What the line with the winner begins with: what stands before it is about the study."""
NO_BEST = "no best and no gain: only launches in full measure them"
LABELS = ("modelled node", "acceptance is simulated", "front: ")
"""What lines of the study begin with that belong to every figure of it."""


def about_the_best(lines: Sequence[str]) -> list[str]:
    """Return the lines of a headline without what the study cost; what labels its figures stays."""
    start = next(index for index, text in enumerate(lines) if text.startswith(BEST))
    return [text for index, text in enumerate(lines) if index >= start or text.startswith(LABELS)]


def reproduce_command(runner: Runner, trial: Trial, manifest: Manifest) -> str:
    """Return the shell line that launches a trial's assignment once more, variables first.

    Where the engine is gone that would have to be asked for its words, it is the line that was launched.
    """
    try:
        command = runner.command(request_of(trial, manifest, environment={}))
    except EngineNotUsableError:
        ran = trial.record
        return command_line(ran.argv, ran.env) if ran else ""
    return command_line(command.argv, command.env)


def as_report(summary: StudySummary, command: str | None, commands: ScheduleCommands | None = None) -> str:
    """Return the report as Markdown."""
    lines = [f"# Study {summary.study}", "", *(f"- {line}" for line in headline(summary))]
    if command is not None:
        lines += ["", "## The command that repeats the best", "", f"    {command}"]
    if summary.schedule is not None:
        told = schedule_markdown(summary.schedule, commands or ScheduleCommands({}, why_none="the engine is not asked"))
        lines += ["", "## How many tokens to draft", "", told]
    lines += ["", "## Dead ends", "", as_markdown(summary.atlas.dead_ends)]
    if time := node_time_markdown(summary):
        lines += ["## Where the node time went", "", time, ""]
    if summary.replaced:
        lines += ["", "## What the engine replaced", "", *(f"- {line}" for line in _replaced(summary.replaced)), ""]
    if summary.unproven:
        shown = (f"- `{name}`: {why}" for name, why in summary.unproven.items())
        lines += ["", "## Not proven to take effect", "", *shown, ""]
    if summary.unknown:
        lines += ["", "## The next rules to write", "", *(f"- {_unknown(trial)}" for trial in summary.unknown), ""]
    return "\n".join(lines)


def _replaced(trials: tuple[Trial, ...]) -> list[str]:
    """Return what was asked for, what ran, in which trials, and what shows it; the same replacement once."""
    seen: dict[tuple[str, str, str], tuple[list[str], str]] = {}
    for trial in trials:
        for each in contradictions(trial):
            labels, _ = seen.setdefault((each.parameter, str(each.requested), str(each.resolved)), ([], each.why))
            labels.append(trial_label(trial))
    return [
        f"`{name}={asked}` ran as `{ran}` in {' '.join(labels)}: {why.strip()}"
        for (name, asked, ran), (labels, why) in seen.items()
    ]


def _unknown(trial: Trial) -> str:
    """Return where a failure that no rule recognises was seen, with its most telling line and its log."""
    failure = trial.outcome.failure if trial.outcome is not None else None
    line = failure.decisive.text.strip() if failure is not None and failure.decisive else "no line tells why"
    log = trial.record.log_path if trial.record is not None else None
    return f"{trial_label(trial)}: `{line.replace('`', chr(39))}`" + (f" ({log})" if log else "")


def documents(summary: StudySummary, command: str | None, commands: ScheduleCommands | None = None) -> dict[str, str]:
    """Return the files that go to the tracking server with the study's own run."""
    found = summary.atlas.dead_ends
    schedule = {}
    if summary.schedule is not None:
        content = schedule_json(summary.schedule, commands)
        schedule = {"schedule.json": json.dumps(content, indent=1) + "\n", **(commands.files if commands else {})}
    return {
        **schedule,
        "dead_ends.json": as_json(found),
        "dead_ends.md": as_markdown(found),
        "dead_ends.html": as_html(found, f"Dead ends of study {summary.study}"),
        "report.md": as_report(summary, command, commands),
    }


def headline(summary: StudySummary) -> list[str]:
    """Return what was found, in a few lines."""
    outcomes = summary.outcomes
    lines = [_closed(summary)]
    if words := cost_words(dict(summary.rungs)):
        lines.append(f"below the top: {words}")
    lines += [f"rungs disagree: {each}" for each in summary.contradictions if each.is_certain]
    if summary.earlier:
        lines.append(f"{summary.earlier} of the launches were made before the environment changed, and are kept apart")
    if outcomes["slower"]:
        lines.append(f"{outcomes['slower']} more launches were stopped early, clearly slower than the best")
    if saved := summary.saved.words():
        lines.append(saved)
    if summary.modelled:
        lines.append(f"modelled node {summary.modelled}: nothing was launched, every figure is the model's")
    if summary.simulated_acceptance is not None:
        lines.append(simulated_note(summary.simulated_acceptance))
    if summary.best is None:
        return [*lines, "nothing was measured" if summary.stops_at is None else NO_BEST]
    lines += [f"front: {_front_arm(summary, each)}" for each in summary.front]
    lines.append(f"{BEST}{_arm(summary, summary.best)}")
    if summary.baseline is None:
        return [*lines, "the baseline without speculation does not work here: no gain can be stated"]
    lines.append(f"baseline without speculation: {_arm(summary, summary.baseline)}")
    if summary.gain is not None:
        mean = "" if len(summary.goals) == 1 else ", geometric mean of the goals"
        words = f"({summary.gain - 1:+.1%}{mean}); verdict: {summary.verdict}"
        lines.append(f"gain: {summary.gain:.2f}× the baseline {words}")
    lines.append(_interval(summary))
    if summary.schedule is not None:
        lines += schedule_lines(summary.schedule)
    if summary.own_agreement is not None and summary.own_agreement < 1.0:
        lines.append(
            f"output: launches of the baseline agree to {summary.own_agreement:.1%}; no more is asked of others"
        )
    return lines if summary.drift is None else [*lines, summary.drift.words()]


def _closed(summary: StudySummary) -> str:
    cost = f"{summary.num_probes} probes; {spoken(summary.node_s)} of node time"
    if summary.stops_at is not None:
        return f"the study stops at the {summary.stops_at.value} rung: nothing was launched in full; {cost}"
    ended = f"{summary.outcomes['measured']} measured, {summary.outcomes['failed']} failed"
    return f"{summary.spent} of {summary.budget} launches closed: {ended}; {cost}"


def _interval(summary: StudySummary) -> str:
    """Return the interval of the ratio that the verdict stands on, or why there is none."""
    if summary.comparison is None:
        return "no interval: too little was repeated"
    is_baseline = summary.best is not None and summary.best is summary.baseline
    whose = "best besides the baseline" if is_baseline else "ratio to the baseline"
    return f"{whose}: {summary.comparison.words()}"


def simulated_note(length: float) -> str:
    """Return the sentence that labels a study whose engine only pretends to judge drafts."""
    return f"acceptance is simulated, {length:g} tokens for each verify pass: the figures of speculation are not real"


def _arm(summary: StudySummary, arm: Arm) -> str:
    spread = f", {min(arm.values):.1f} to {max(arm.values):.1f}" if len(arm.values) > 1 else ""
    numbers = " ".join(f"#{trial.number}" for trial in arm.trials)
    launches = "launch" if len(arm.values) == 1 else "launches"
    mean = in_words(arm.mean, mean_figures(arm.trials), summary.goals)
    spread = spread if len(summary.goals) == 1 else ""
    return f"{summary.changes(arm.assignment)}: {mean} ({len(arm.values)} {launches}{spread}; {numbers})"


def _front_arm(summary: StudySummary, found: FrontArm) -> str:
    broken = "" if found.keeps_limits else "; breaks the limits"
    numbers = " ".join(f"#{trial.number}" for trial in found.arm.trials)
    shown = in_words(found.arm.mean, found.figures, summary.goals)
    return f"{summary.changes(found.arm.assignment)}: {shown} ({numbers}{broken})"
