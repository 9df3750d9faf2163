"""Runs one spoilt input through the command line in this process, under a time limit, and judges what it said."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from click.testing import CliRunner

from agent.cli.main import main
from runners import Rung
from runners.base_command import split_base_command
from runners.load_client.prompts import DatasetError, read_dataset
from runners.replay import recorded_answer
from search_spaces import NodeModel, SpecificationError, load_replayed, load_space
from tests.support.bad_input.cases import COMMAND, Case
from tests.support.modelled_study import ModelledStudy
from tests.support.recorded_options import recorded, recorded_versions
from tests.support.small_node import request_for

ACCEPTED, USAGE = 0, 2
ALLOWED_CODES = (ACCEPTED, USAGE)
LONGEST_MESSAGE = 1500
REHEARSED = 6
"""Launches of a study on an accepted node."""
_LINE = re.compile(r":\d+: |\bline \d+\b")
_FILE = re.compile(r"^/[^\n]*?: (?=\S)")
_KEY = re.compile(r"^[^\s:]{1,120}: |--[a-z]|'[A-Z]+(?:\.{3}|…)?'|\b(?:command|argument|variable|option) |^LOG ")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b\ud800-\udfff]")


class HangError(BaseException):
    """A case took longer than its limit. No handler for errors may swallow it."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case. `problem` is empty where it was accepted, or refused as it should be."""

    problem: str
    message: str = ""
    detail: str = ""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise HangError in the main thread after so many seconds."""

    def on_alarm(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def verdict_of(case: Case, folder: Path, limit_s: float) -> Verdict:
    """Run a case in this process and return the verdict."""
    try:
        with time_limit(limit_s):
            found = _invoke(case, folder) if case.words else _read(case, folder)
    except HangError:
        return Verdict("hang", detail="".join(traceback.format_stack()[-1:]))
    if found.problem or not found.message:
        return found
    if (folder / "home").exists():
        return Verdict("wrote something", found.message)
    return found


def _read(case: Case, folder: Path) -> Verdict:
    try:
        if case.kind == "command":
            text = (folder / COMMAND).read_text(encoding="utf-8", errors="surrogateescape")
            split_base_command(text, load_space("vllm"), recorded("vllm", recorded_versions("vllm")[-1]))
        else:
            read_dataset(folder / "prompts.jsonl", 8)
    except (DatasetError, SpecificationError) as error:
        return judged(f"Error: {error}", USAGE)
    except Exception:  # noqa: BLE001 (that there is none is what is measured)
        return Verdict("traceback", detail=traceback.format_exc())
    return Verdict("")


def rehearse(node_path: str, folder: Path) -> None:
    """Search a few launches on an accepted node, or answer the first ones of a table: nothing may break then."""
    node = load_replayed(node_path)
    if isinstance(node, NodeModel):
        ModelledStudy(node=node, budget=REHEARSED).run()
        return
    for trial in node.trials[:REHEARSED]:
        point = node.space.normalise(trial.assignment, node.facts)
        recorded_answer(node, request_for(point, folder, rung=Rung(trial.rung), node_model=node_path))


def _invoke(case: Case, folder: Path) -> Verdict:
    try:
        return _judged_run(case, folder)
    except Exception:  # noqa: BLE001 (that there is none is what is measured)
        return Verdict("traceback", detail=traceback.format_exc())


def _judged_run(case: Case, folder: Path) -> Verdict:
    result = CliRunner(env=dict(case.variables)).invoke(main, list(case.words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        shown = "".join(traceback.format_exception(*result.exc_info)) if result.exc_info else ""
        return Verdict("traceback", detail=shown)
    found = judged(result.stderr, result.exit_code)
    if result.exit_code == ACCEPTED and "--node" in case.words:
        rehearse(case.words[case.words.index("--node") + 1], folder)
    return found


def judged(errors: str, exit_code: int) -> Verdict:
    """Return the verdict on what a command printed to its standard error and how it ended."""
    if "Traceback (most recent call last)" in errors:
        return Verdict("traceback", detail=errors)
    if exit_code not in ALLOWED_CODES:
        return Verdict(f"exit code {exit_code}", errors)
    if exit_code == ACCEPTED:
        return Verdict("")
    _, found, message = errors.partition("Error: ")
    message = message.rstrip("\n")
    if not found:
        return Verdict("no message", errors)
    if len(message) > LONGEST_MESSAGE:
        return Verdict("endless message", message)
    if _UNPRINTABLE.search(message) or "\n" in message:
        return Verdict("unprintable message", message)
    if not names_a_place(message):
        return Verdict("neither key nor line", message)
    return Verdict("", message)


def names_a_place(message: str) -> bool:
    """True for a message that names a line, a key, an option, an argument or a variable."""
    return bool(_LINE.search(message) or _KEY.search(_FILE.sub("", message, count=1)))
