"""Spoilt input of every kind: how many tracebacks, hangs, and messages that name neither a key nor a line?

    python -m tests.benchmarks.bad_input --cases 10000
    python -m tests.benchmarks.bad_input --seed 4711          # one case, with what it says

A case is a seed: a valid study.yaml, space, node model, recorded table, rules file or dataset that is changed in its
data, its text, its encoding or its place on the disk; or words and variables of a command. It goes through the command
line in this process, under a time limit, and a share of them through `python -m agent`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import click

from tests.support.bad_input.cases import Case, make_case
from tests.support.bad_input.verdicts import Verdict, judged, verdict_of
from tests.support.command_line import environment

LIMIT_S = 20.0
PROCESS_LIMIT_S = 60.0
FIRST_SHOWN = 3
"""Cases of each problem that are shown whole."""


def in_process(case: Case) -> Verdict:
    """Run a case as the user does and return the verdict."""
    command = [sys.executable, "-m", "agent", *case.words]
    try:
        done = subprocess.run(
            [word.encode("utf-8", "surrogateescape") for word in command],
            env={**environment(), **case.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROCESS_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict("hang")
    return judged(done.stderr.decode("utf-8", "replace"), done.returncode)


def in_a_folder(seed: int, scratch: Path, *, as_process: bool = False) -> tuple[Case, Verdict, float]:
    """Make the case of a seed in a new folder, run it, and remove the folder."""
    folder = scratch / str(seed)
    folder.mkdir()
    case = make_case(seed, folder)
    started = time.monotonic()
    verdict = in_process(case) if as_process and case.words else verdict_of(case, folder, LIMIT_S)
    spent = time.monotonic() - started
    shutil.rmtree(folder, ignore_errors=True)
    return case, verdict, spent


@click.command()
@click.option("--cases", default=10_000, show_default=True)
@click.option("--processes", default=300, show_default=True, help="Cases that go through a process of their own.")
@click.option("--first", default=0, show_default=True, help="First seed.")
@click.option("--seed", type=int, help="One case only, with what it says.")
def main(cases: int, processes: int, first: int, seed: int | None) -> None:
    """Count what goes wrong."""
    with tempfile.TemporaryDirectory(prefix="bad-input-") as folder:
        if seed is not None:
            case, verdict, spent = in_a_folder(seed, Path(folder))
            click.echo(f"{case}\n{verdict.problem or 'fine'} in {spent:.2f} s\n{verdict.message}\n{verdict.detail}")
            return
        seeds = [*((number, False) for number in range(first, first + cases))]
        seeds += [(number, True) for number in range(first + cases, first + cases + processes)]
        _count(seeds, Path(folder))


def _count(seeds: list[tuple[int, bool]], scratch: Path) -> None:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    problems: Counter[str] = Counter()
    slowest = (0.0, 0)
    for number, as_process in seeds:
        case, verdict, spent = in_a_folder(number, scratch, as_process=as_process)
        kinds[case.kind][verdict.problem or ("refused" if verdict.message else "accepted")] += 1
        slowest = slowest if as_process else max(slowest, (spent, number))
        if verdict.problem:
            problems[verdict.problem] += 1
            if problems[verdict.problem] <= FIRST_SHOWN or verdict.problem == "traceback":
                last = verdict.detail.strip().splitlines()[-1:]
                click.echo(f"{verdict.problem}: --seed {number} ({case.kind}) {verdict.message[:300]} {last}", err=True)
    for kind, counts in sorted(kinds.items()):
        click.echo(
            f"{kind:<12} {sum(counts.values()):>6}: " + ", ".join(f"{n} {what}" for what, n in counts.most_common())
        )
    spent, number = slowest
    click.echo(f"slowest in this process: {spent:.2f} s (--seed {number})")
    click.echo(f"{len(seeds)} cases: {dict(problems) or 'no problem'}")


if __name__ == "__main__":
    main()
