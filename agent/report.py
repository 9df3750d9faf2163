"""The end of a study in words: the best configuration, its gain, the command that repeats it, and the map."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from agent.deadends.documents import as_html, as_json, as_markdown
from agent.deadends.observation import trial_label
from agent.effects import contradictions
from agent.redaction import is_secret, redact_argv, redact_text
from agent.requests import request_of
from agent.rungs import cost_words
from agent.store.manifest import Manifest
from agent.store.trial import Trial
from agent.summary import Arm, StudySummary
from runners import Runner
from runners.engine_dialects import EngineNotUsableError


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


def command_line(argv: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Return an argument list and its variables as one line that a POSIX shell reads the same way.

    A secret variable is taken from the shell that the line is pasted into; a secret argument is masked.
    """
    variables = [f"{name}={_shell_value(name, value)}" for name, value in sorted(env.items())]
    return " ".join([*variables, shlex.join(redact_argv(argv))])


def _shell_value(name: str, value: str) -> str:
    return f'"${name}"' if is_secret(name, value) else shlex.quote(redact_text(value))


def as_report(summary: StudySummary, command: str | None) -> str:
    """Return the report as Markdown."""
    lines = [f"# Study {summary.study}", "", *(f"- {line}" for line in headline(summary))]
    if command is not None:
        lines += ["", "## The command that repeats the best", "", f"    {command}"]
    lines += ["", "## Dead ends", "", as_markdown(summary.atlas.dead_ends)]
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


def documents(summary: StudySummary, command: str | None) -> dict[str, str]:
    """Return the files that go to the tracking server with the study's own run."""
    found = summary.atlas.dead_ends
    return {
        "dead_ends.json": as_json(found),
        "dead_ends.md": as_markdown(found),
        "dead_ends.html": as_html(found, f"Dead ends of study {summary.study}"),
        "report.md": as_report(summary, command),
    }


def headline(summary: StudySummary) -> list[str]:
    """Return what was found, in a few lines."""
    outcomes = summary.outcomes
    lines = [
        f"{summary.spent} of {summary.budget} launches closed: {outcomes['measured']} measured, "
        f"{outcomes['failed']} failed; {summary.num_probes} probes; {summary.node_s:.0f} s of node time",
    ]
    if words := cost_words(dict(summary.rungs)):
        lines.append(f"below the top: {words}")
    lines += [f"rungs disagree: {each}" for each in summary.contradictions if each.is_certain]
    if summary.modelled:
        lines.append(f"modelled node {summary.modelled}: nothing was launched, every figure is the model's")
    if summary.simulated_acceptance is not None:
        lines.append(simulated_note(summary.simulated_acceptance))
    if summary.best is None:
        return [*lines, "nothing was measured"]
    lines.append(f"best: {_arm(summary, summary.best)}")
    if summary.baseline is None:
        return [*lines, "the baseline without speculation does not work here: no gain can be stated"]
    lines.append(f"baseline without speculation: {_arm(summary, summary.baseline)}")
    if summary.gain is not None:
        lines.append(f"gain: {summary.gain:.2f}× the baseline ({summary.gain - 1:+.1%}); verdict: {summary.verdict}")
    return lines


def simulated_note(length: float) -> str:
    """Return the sentence that labels a study whose engine only pretends to judge drafts."""
    return f"acceptance is simulated, {length:g} tokens for each verify pass: the figures of speculation are not real"


def _arm(summary: StudySummary, arm: Arm) -> str:
    spread = f", {min(arm.values):.1f} to {max(arm.values):.1f}" if len(arm.values) > 1 else ""
    numbers = " ".join(f"#{trial.number}" for trial in arm.trials)
    launches = "launch" if len(arm.values) == 1 else "launches"
    return f"{summary.changes(arm.assignment)}: {arm.mean:.1f} tok/s ({len(arm.values)} {launches}{spread}; {numbers})"
