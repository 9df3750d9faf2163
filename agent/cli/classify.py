"""`agent classify`: why a launch failed, from its log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent.cli.options import json_option

if TYPE_CHECKING:
    from agent.classify import Diagnosis, Rule
    from runners import LogLine


@click.command(epilog="Example: agent classify server.log")
@click.argument("logs", nargs=-1, required=True, metavar="LOG…")
@click.option("--exit-code", type=int, help="How the launch ended; negative, or above 128, for a signal.")
@click.option("--rules", "rules_file", metavar="FILE", help="YAML file with rules of your own.")
@json_option
def command(logs: tuple[str, ...], exit_code: int | None, rules_file: str | None, as_json: bool) -> None:
    """Say why a launch of SGLang, vLLM or torch failed: reason, decisive line, cure. No study is needed.

    LOG is a file, also a .gz one, or - for standard input.
    """
    import json

    rules = _rules(rules_file)
    found = [(log, _diagnose(log, exit_code, rules)) for log in logs]
    if as_json:
        answers = [_as_dict(log, diagnosis) for log, diagnosis in found]
        click.echo(json.dumps(answers[0] if len(answers) == 1 else answers, indent=2))
        return
    for number, (log, diagnosis) in enumerate(found):
        if number:
            click.echo()
        _print(log, diagnosis)


def _rules(rules_file: str | None) -> tuple[Rule, ...]:
    from agent.classify import RULES

    if rules_file is None:
        return RULES
    from agent.classify.user_rules import with_user_rules
    from agent.study_rules import rules_of_file

    return with_user_rules(rules_of_file(rules_file))


def _diagnose(log: str, exit_code: int | None, rules: tuple[Rule, ...]) -> Diagnosis:
    from agent.classify import diagnose
    from agent.classify.log_files import open_log

    with open_log(log) as opened:
        return diagnose(opened.source, exit_code=exit_code, max_bytes=opened.max_bytes, rules=rules)


def _as_dict(log: str, diagnosis: Diagnosis) -> dict[str, Any]:
    from agent.clean_evidence import clean_failure

    failure = diagnosis.failure
    shared = {"log": log, "phase": diagnosis.phase.value, "note": diagnosis.note}
    if failure is None:
        return shared | {
            "reason": "none",
            "rule": None,
            "confidence": 1.0,
            "decisive": None,
            "supporting": [],
            "blames": [],
            "policy": None,
            "cure": "",
            "other_reasons": [],
            "depends_on": [],
        }
    return shared | clean_failure(failure).model_dump(mode="json") | {"depends_on": list(failure.facts)}


def _print(log: str, diagnosis: Diagnosis) -> None:
    failure = diagnosis.failure
    if failure is None:
        click.echo(f"{log}: no failure")
        click.echo(f"  {diagnosis.note}")
        return
    trust = (
        f"rule {failure.rule}, confidence {failure.confidence:.1f}" if failure.rule != "none" else "no rule knows it"
    )
    click.echo(f"{log}: {failure.reason.value} ({trust})")
    if failure.decisive:
        click.echo(f"  {_line(failure.decisive)}")
    for line in failure.supporting:
        click.echo(f"  see also {_line(line)}")
    facts = {
        "phase": failure.phase.value,
        "blames": ", ".join(failure.blames),
        "policy": failure.policy.value.replace("_", " "),
        "cure": failure.cure,
        "other": ", ".join(reason.value for reason in failure.other_reasons),
        "note": diagnosis.note,
    }
    for name, text in facts.items():
        if text:
            click.echo(f"  {name:7}{text}")


def _line(line: LogLine) -> str:
    """The line as a terminal may show it: no control characters of somebody else's log, and no secrets."""
    from agent.redaction import redact_text

    text = redact_text(line.text)
    return f"line {line.number}: " + "".join(char if char.isprintable() else " " for char in text)
