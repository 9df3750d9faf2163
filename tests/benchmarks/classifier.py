"""How often the classifier is right on a corpus of failure logs, and how fast it reads.

    python tests/benchmarks/classifier.py --corpus DIR [--speed] [--wrong]

DIR holds `excerpts.jsonl` (log, label, accept, root_line, transient) and `logs.jsonl` (file, label, accept,
root_contains, exit_code) with the logs themselves. Rules must be written for families of messages, not for a corpus:
the second table switches off, for each case, the very pattern that decided it.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.classify import RULES, Diagnosis, Rule, diagnose
from agent.classify.matcher import find
from agent.reasons import Policy

MIB = 2**20
NONE = "none"
SIZES_MIB = (20, 200)


@dataclass(frozen=True)
class Case:
    """One log with the right answers."""

    name: str
    log: bytes
    label: str
    accept: tuple[str, ...]
    root: str
    is_transient: bool
    exit_code: int | None = None

    def diagnose(self, rules: tuple[Rule, ...] = RULES) -> Diagnosis:
        """Return what the classifier says."""
        return diagnose(io.BytesIO(self.log), exit_code=self.exit_code, rules=rules)


def excerpts(corpus: Path) -> list[Case]:
    """Return the short cases."""
    rows = _rows(corpus / "excerpts.jsonl")
    return [
        Case(row["id"], row["log"].encode(), row["label"], tuple(row["accept"]), row["root_line"], row["transient"])
        for row in rows
    ]


def whole_logs(corpus: Path) -> list[Case]:
    """Return the whole logs, with their exit codes."""
    return [
        Case(
            row["id"],
            (corpus / row["file"]).read_bytes(),
            row["label"],
            tuple(row["accept"]),
            row["root_contains"] or "",
            False,
            row["exit_code"],
        )
        for row in _rows(corpus / "logs.jsonl")
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reason_of(found: Diagnosis) -> str:
    """Return the reason's code, or `none`."""
    return found.failure.reason.value if found.failure else NONE


def is_right(case: Case, found: Diagnosis) -> bool:
    """True for the label or another accepted answer."""
    return reason_of(found) in (case.label, *case.accept)


def is_root(case: Case, found: Diagnosis) -> bool:
    """True when the decisive line is the corpus' root line (prefixes and cuts aside)."""
    if found.failure is None or found.failure.decisive is None:
        return False
    shown, root = (" ".join(text.split()) for text in (found.failure.decisive.text, case.root))
    return root in shown or (len(shown) > 20 and shown in root)


def without_deciding_pattern(case: Case, found: Diagnosis) -> tuple[Rule, ...]:
    """Return the rules without the patterns of the winning rule that match the decisive line."""
    failure = found.failure
    if failure is None or failure.decisive is None:
        return RULES
    line = failure.decisive.text.encode()
    rules = []
    for rule in RULES:
        if rule.code != failure.rule or not rule.any_of:
            rules.append(rule)
            continue
        kept = tuple(pattern for pattern in rule.any_of if not find(pattern, line))
        if kept:
            rules.append(dataclasses.replace(rule, any_of=kept))
    return tuple(rules)


def report(title: str, cases: list[Case], *, shows_wrong: bool) -> None:
    """Print accuracy, roots, confusion and the policies' check for one part of the corpus."""
    found = [(case, case.diagnose()) for case in cases]
    failures = [(case, one) for case, one in found if case.label != NONE]
    healthy = [(case, one) for case, one in found if case.label == NONE]
    with_root = [(case, one) for case, one in failures if case.root]
    print(f"\n## {title}: {len(cases)} cases, {len(failures)} of them failures\n")
    _share("label or accepted", [is_right(*pair) for pair in found])
    _share("failures alone", [is_right(*pair) for pair in failures])
    _share("decisive line is the root line", [is_root(*pair) for pair in with_root])
    print(f"healthy logs called a failure: {sum(not is_right(*pair) for pair in healthy)}")
    dead = [case.name for case, one in found if case.is_transient and _is_dead_at_once(one)]
    print(f"transient and yet dead at once: {', '.join(dead) or 0}")
    wrong = Counter((case.label, reason_of(one)) for case, one in found if not is_right(case, one))
    print("\n| label | given, wrongly | cases |\n|---|---|---|")
    print("\n".join(f"| {label} | {given} | {count} |" for (label, given), count in wrong.most_common()))
    if shows_wrong:
        _print_wrong(found)


def _print_wrong(found: Iterable[tuple[Case, Diagnosis]]) -> None:
    for case, one in found:
        marks = "" if is_right(case, one) else "WRONG "
        marks += "ROOT " if case.root and case.label != NONE and not is_root(case, one) else ""
        if marks:
            failure = one.failure
            line = failure.decisive.text[:150] if failure and failure.decisive else ""
            given = f"given {reason_of(one)} by {failure.rule if failure else ''}"
            print(f"{marks}{case.name}: {case.label} {case.accept}, {given}: {line}\n      root: {case.root[:150]}")


def _is_dead_at_once(found: Diagnosis) -> bool:
    return found.failure is not None and found.failure.policy is Policy.DEAD_AT_ONCE


def _share(what: str, values: list[bool]) -> None:
    print(f"{what}: {sum(values)} of {len(values)} = {sum(values) / max(1, len(values)):.3f}")


def report_without(title: str, cases: list[Case]) -> None:
    """Print the accuracy with each case's own deciding pattern switched off."""
    failures = [case for case in cases if case.label != NONE]
    rest = [is_right(case, case.diagnose(without_deciding_pattern(case, case.diagnose()))) for case in failures]
    _share(f"{title}, each without the pattern that decided it", rest)


def write_log(path: Path, corpus: Path, size_mib: int) -> None:
    """Write a serving log of this size with every failure of the corpus in its last tenth."""
    line = b"[2026-11-29 16:57:%02d TP0] Decode batch, #running-req: 8, #token: %d, gen throughput (token/s): 270.45\n"
    noise = b"".join(line % (index % 60, index * 40) for index in range(10_000))
    tail = b"\n".join(case.log for case in excerpts(corpus))
    with path.open("wb") as file:
        while file.tell() < 0.9 * size_mib * MIB:
            file.write(noise)
        while file.tell() < size_mib * MIB:
            file.write(tail)


def report_speed(corpus: Path, folder: Path) -> None:
    """Print seconds and memory for two sizes of log."""
    print("\n## Speed\n\n| log | seconds | peak memory, MiB |\n|---|---|---|")
    seconds = []
    for size_mib in SIZES_MIB:
        path = folder / f"serving-{size_mib}.log"
        write_log(path, corpus, size_mib)
        started = time.perf_counter()
        with path.open("rb") as file:
            diagnose(file)
        seconds.append(time.perf_counter() - started)
        path.unlink()
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {size_mib} MiB | {seconds[-1]:.2f} | {peak_mib:.0f} |")
    print(f"\nratio of {SIZES_MIB[1]} to {SIZES_MIB[0]} MiB: {seconds[1] / seconds[0]:.1f}")


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--speed", type=Path, metavar="FOLDER", help="measure the speed only, with logs written here")
    parser.add_argument("--wrong", action="store_true", help="show each case that is wrong")
    options = parser.parse_args()
    if options.speed:
        report_speed(options.corpus, options.speed)
        return
    parts = {"Excerpts": excerpts(options.corpus), "Whole logs": whole_logs(options.corpus)}
    for title, cases in parts.items():
        report(title, cases, shows_wrong=options.wrong)
    print("\n## Without the deciding pattern\n")
    for title, cases in parts.items():
        report_without(title, cases)


if __name__ == "__main__":
    sys.exit(main())
