"""`agent explain`: one trial, from what was run to what would help."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from agent.cli.options import home_option, json_option, storage_option

if TYPE_CHECKING:
    from agent.explanation import TrialExplanation
    from agent.propose.history import History
    from search_spaces import Assignment

MOST_LABELS = 3


@click.command(epilog="Example: agent explain '#12'; agent explain p3")
@click.argument("trial")
@click.option("--study", help="Study.  [default: the last one]")
@json_option
@storage_option
@home_option
def command(trial: str, study: str | None, as_json: bool, storage: str | None, home: str | None) -> None:
    """Explain TRIAL (#12 or 12 for a launch, p3 for a probe): why it failed, what it taught, what would likely help."""
    from agent.cli.screen import make_console, print_indented
    from agent.explanation import explain, find_trial
    from agent.home import Home
    from agent.reading import read_study

    history = read_study(Home.find(home), study, storage).history_with(trial)
    explained = explain(history, find_trial(history, trial))
    if as_json:
        click.echo(json.dumps(_content(explained), indent=2, ensure_ascii=False))
        return
    console = make_console()
    for line in _lines(explained, _unit(history, explained)):
        text = line.lstrip()
        print_indented(console, text, len(line) - len(text))


def _content(explained: TrialExplanation) -> dict[str, object]:
    from agent.deadends.observation import trial_label
    from agent.effects import contradictions

    trial = explained.trial
    outcome, record = trial.outcome, trial.record
    failure = outcome.failure if outcome else None
    return {
        "trial": trial_label(trial),
        "kind": trial.work.kind.value,
        "stage": trial.work.stage,
        "rung": trial.work.rung.value,
        "assignment": trial.work.resolved,
        "base": explained.base,
        "changes": explained.changes,
        "replaced": [
            {"parameter": each.parameter, "asked": each.requested, "ran": each.resolved, "why": each.why}
            for each in contradictions(trial)
        ],
        "outcome": outcome.kind.value if outcome else None,
        "value": outcome.value if outcome else None,
        "reason": failure.reason.value if failure else None,
        "phase": failure.phase.value if failure else None,
        "decisive": failure.decisive.text.strip() if failure and failure.decisive else None,
        "blames": list(failure.blames) if failure else [],
        "cure": failure.cure if failure else None,
        "slot": record.slot.words() if record and record.slot else None,
        "log": record.log_path if record else None,
        "dead_ends": [found.id for found in explained.taught],
        "refuted": [found.id for found in explained.refuted],
        "contradictions": [each.model_dump(mode="json") for each in explained.contradictions],
        "causes": [{"conditions": each.conditions, "share": each.share} for each in explained.causes],
        "cures": [
            {
                "parameter": each.parameter,
                "value": each.value,
                "chance": each.chance,
                "worked_in": list(each.trials),
                "is_escape": each.is_escape,
            }
            for each in explained.cures
        ],
    }


def _unit(history: History, explained: TrialExplanation) -> str:
    """Return what a trial's figure is measured in; nothing for rungs that measure nothing."""
    goals, rung = history.settings.goals, explained.trial.work.rung.value
    of_launch = goals[0].short_unit if len(goals) == 1 else "(geometric mean of the goals)"
    return {"full": of_launch, "probe": "µs a verify pass"}.get(rung, "s")


def _lines(explained: TrialExplanation, unit: str) -> list[str]:
    from agent.effects import contradictions

    content = _content(explained)
    changes = _words(explained.changes)
    what = f"{changes}, all else as in its base" if changes else "the same as its base"
    lines = [f"{content['trial']} {content['kind']}: {content['stage']}", f"  ran: {what}", *_ending(explained, unit)]
    lines += [
        f"  asked for {_words({each.parameter: each.requested})}, ran {each.resolved}: {each.why}"
        for each in contradictions(explained.trial)
    ]
    lines += [f"  ran on {content['slot']}"] if content["slot"] is not None else []
    lines += [f"  taught: dead end {found.id} ({found.state.value}): {found}" for found in explained.taught]
    lines += [f"  refuted: dead end {found.id}: {found}" for found in explained.refuted]
    lines += [f"  rungs disagree: {each}" for each in explained.contradictions]
    if explained.causes:
        lines += ["  may have caused it:", *(f"    {each.share:>4.0%}  {each.conditions}" for each in explained.causes)]
    if explained.cures:
        lines.append("  single changes that may help, with the chance that the launch then works:")
    elif explained.trial.is_failed:
        lines.append("  no single change to a value that was seen to work is known to help")
    for cure in explained.cures:
        where = f"{'an escape, ' * cure.is_escape}worked in {' '.join(cure.trials[:MOST_LABELS])}"
        lines.append(f"    {cure.chance:>4.0%}  {_words({cure.parameter: cure.value})} ({where})")
    return lines


def _ending(explained: TrialExplanation, unit: str) -> list[str]:
    outcome, record = explained.trial.outcome, explained.trial.record
    if outcome is None:
        return ["  still running"]
    failure = outcome.failure
    if failure is None:
        said = f"{outcome.value:.1f} {unit}" if outcome.value is not None else outcome.note
        return [f"  {outcome.kind.value.replace('_', ' ')}" + (f": {said}" if said else "")]
    lines = [f"  {outcome.kind.value}: {failure.reason.value} in phase {failure.phase.value}"]
    lines += [f"    line {failure.decisive.number}: {failure.decisive.text.strip()}"] if failure.decisive else []
    lines += [f"    blamed: {', '.join(failure.blames)}"] if failure.blames else []
    lines += [f"    cure: {failure.cure}"] if failure.cure else []
    return lines + ([f"    log: {record.log_path}"] if record and record.log_path else [])


def _words(values: Assignment) -> str:
    from search_spaces.switches import spelled

    return " ".join(f"{name}={spelled(value)}" for name, value in values.items())
