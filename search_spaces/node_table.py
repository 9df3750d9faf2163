"""Recorded tables: real trials as a node to replay. An assignment that was not recorded is refused, never guessed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue

from search_spaces.assignment import Assignment, Scalar, assignment_key
from search_spaces.errors import SpecificationError
from search_spaces.files import read_text
from search_spaces.loader import check_space, load_space
from search_spaces.node_answers import geometric_mean
from search_spaces.node_model import LEVELS, with_defaults, without_probes
from search_spaces.node_parts import PhaseName, PlantedExit, Seconds, fact_problems
from search_spaces.scalar import StrictScalar
from search_spaces.space import SearchSpace
from search_spaces.switches import SpaceModel
from search_spaces.table_files import MAX_BYTES, InLine, csv_rows, json_lines, parsed

NOT_RECORDED = "not recorded: the table holds no trial of this assignment"
RATE = "tok_per_s@"
"""Column of a CSV file for the tokens per second at the concurrency level that follows."""
NO_PARAMETER = ("rung", "pass_us", "calls_per_pass", "reason", "phase", "seconds", "log", "blames")
FIGURES = ("seconds", "pass_us", "calls_per_pass")


class RecordedLevel(SpaceModel):
    """What a trial measured at one concurrency level."""

    concurrency: int = Field(ge=1)
    tok_per_s: float = Field(gt=0)
    acceptance_length: float = Field(default=1.0, ge=1)


class RecordedFailure(SpaceModel):
    """How a trial failed."""

    reason: str
    phase: PhaseName = "spawn"
    log: tuple[str, ...] = ()
    exit: PlantedExit = PlantedExit(code=1)
    blames: tuple[str, ...] = ()


class RecordedTrial(SpaceModel):
    """One line of a table: an assignment, and what came of it."""

    assignment: Mapping[str, StrictScalar]
    rung: Literal["probe", "full"] = "full"
    seconds: Seconds = 0.0
    """From the request to the end of the clean-up."""
    phase_s: Mapping[PhaseName, Seconds] = Field(default_factory=dict)
    levels: tuple[RecordedLevel, ...] = ()
    pass_us: float | None = None
    """For a probe: communication time of a verify pass."""
    calls_per_pass: float = 1.0
    failure: RecordedFailure | None = None


class TableHead(SpaceModel):
    """The first line of a JSON-lines table."""

    node: str
    about: str = ""
    space: JsonValue
    """Catalogue name, or the whole space."""
    facts: Mapping[str, JsonValue]


@dataclass(frozen=True)
class RecordedNode:
    """A recorded table together with its space, narrowed to what was recorded."""

    name: str
    space: SearchSpace
    facts: Mapping[str, object]
    trials: tuple[RecordedTrial, ...]

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str], list[RecordedTrial]]:
        """(rung, key of the assignment in normal form) → its trials, in the order of the table."""
        found: dict[tuple[str, str], list[RecordedTrial]] = {}
        for trial in self.trials:
            found.setdefault((trial.rung, self.key_of(trial.assignment)), []).append(trial)
        return found

    def key_of(self, assignment: Mapping[str, Scalar]) -> str:
        """Return the key of an assignment in normal form."""
        return assignment_key(self.space.normalise(assignment, self.facts))

    def recorded(self, assignment: Mapping[str, Scalar], rung: str = "full") -> list[RecordedTrial]:
        """Return the recorded trials of an assignment at a rung; none: nothing is known of it.

        What failed as a probe and was never launched fails as a launch too: that is what a probe is for.
        """
        key = self.key_of(assignment)
        if rung == "probe" or ("full", key) in self.by_key:
            return self.by_key.get((rung, key), [])
        return [trial for trial in self.by_key.get(("probe", key), []) if trial.failure is not None]

    def value(self, assignment: Mapping[str, Scalar], levels: Sequence[int] = LEVELS) -> float | None:
        """Return the mean objective of the recorded launches, or None where none was measured at these levels."""
        values = [value for trial in self.recorded(assignment) if (value := _objective(trial, levels)) is not None]
        return statistics.fmean(values) if values else None

    def best(self, levels: Sequence[int] = LEVELS) -> tuple[Assignment, float] | None:
        """Return the recorded assignment with the best mean objective."""
        points = [self.space.normalise(trial.assignment, self.facts) for trial in self.trials if trial.levels]
        values = [(point, value) for point in points if (value := self.value(point, levels)) is not None]
        return max(values, key=lambda pair: pair[1], default=None)


def load_table(path: Path) -> RecordedNode:
    """Return the recorded table in a .jsonl or .csv file.

    Raises:
        SpecificationError: with file and line, for anything that is wrong in it.
    """
    text = read_text(path, MAX_BYTES)
    node = _from_csv(path, text) if path.suffix == ".csv" else _from_lines(path, text)
    if not any(trial.rung == "full" for trial in node.trials):
        raise SpecificationError("no launch of the full rung is recorded", path=path, line=text.count("\n") or 1)
    return node


def _from_lines(path: Path, text: str) -> RecordedNode:
    rows = json_lines(path, text)
    first, content = next(rows, (1, None))
    if content is None:
        raise SpecificationError("the file is empty", path=path, line=first)
    head = parsed(path, first, content, TableHead)
    space = _space_of_head(path, first, head)
    trials = []
    for number, row in rows:
        trial = parsed(path, number, row, RecordedTrial)
        _check(path, number, trial, space)
        trials.append(trial)
    facts = {**head.facts, "hostname": f"modelled:{head.node}"}
    return RecordedNode(head.node, _narrowed(path, space, trials), facts, tuple(trials))


def _space_of_head(path: Path, line: int, head: TableHead) -> SearchSpace:
    for name, problem in fact_problems(head.facts):
        raise InLine(path, line, "facts").error(problem, name)
    if not isinstance(head.space, str):
        source = InLine(path, line, "space")
        space = parsed(path, line, head.space, SearchSpace, "space")
        check_space(source, space)
        return space
    try:
        return load_space(head.space)
    except SpecificationError as error:
        raise SpecificationError(error.problem, path=path, line=line, key="space") from error


def _from_csv(path: Path, text: str) -> RecordedNode:
    """A row a trial. Columns: the parameters, tok_per_s@LEVEL, and what else `NO_PARAMETER` lists."""
    rows = list(csv_rows(path, text))
    names = [name for name in rows[0][1] if name not in NO_PARAMETER and not name.startswith(RATE)] if rows else []
    if not names:
        problem = "needs a first line with the parameters' names, and rows of as many cells"
        raise SpecificationError(problem, path=path, line=1)
    trials = [parsed(path, number, _row(path, number, row, names), RecordedTrial) for number, row in rows]
    facts = {"device": "cpu", "num_ranks": 1, "engine_version": "recorded", "hostname": f"modelled:{path.stem}"}
    return RecordedNode(path.stem, _space_of(path, names, trials), facts, tuple(trials))


def _row(path: Path, line: int, row: Mapping[str, str], names: Iterable[str]) -> dict[str, Any]:
    levels = [
        {
            "concurrency": _number(path, line, column, column.removeprefix(RATE), int),
            "tok_per_s": _number(path, line, column, text, float),
        }
        for column, text in row.items()
        if column.startswith(RATE) and text
    ]
    found: dict[str, Any] = {"assignment": {name: _scalar(row[name]) for name in names}, "levels": levels}
    found |= {name: row[name] for name in ("rung",) if row.get(name)}
    found |= {name: _number(path, line, name, row[name], float) for name in FIGURES if row.get(name)}
    if row.get("reason"):
        lines = {"log": row["log"].splitlines()} if row.get("log") else {}
        blames = {"blames": row["blames"].split()} if row.get("blames") else {}
        phase = {"phase": row["phase"]} if row.get("phase") else {}
        found["failure"] = {"reason": row["reason"], **phase, **lines, **blames}
    return found


def _number(path: Path, line: int, column: str, text: str, kind: type[float]) -> float:
    try:
        number = kind(text)
    except ValueError as error:
        problem = f"{text!r} is no {'whole ' * (kind is int)}number"
        raise SpecificationError(problem, path=path, line=line, key=column) from error
    if not math.isfinite(number):
        raise SpecificationError(f"{text!r} is no finite number", path=path, line=line, key=column)
    return number


def _space_of(path: Path, names: Iterable[str], trials: Sequence[RecordedTrial]) -> SearchSpace:
    parameters = {}
    for name in names:
        values = list(dict.fromkeys(trial.assignment[name] for trial in trials))
        is_ordered = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        parameters[name] = {
            "meaning": "as recorded",
            "source": f"{path.name}, version 1",
            "values": sorted(values) if is_ordered else values,
            "default": trials[0].assignment[name],
            "flag": name.replace("_", "-"),
            "seen_by_probe": any(trial.rung == "probe" for trial in trials),
        }
    return parsed(path, 1, {"engine": "replay", "parameters": parameters}, SearchSpace)


def _narrowed(path: Path, space: SearchSpace, trials: Sequence[RecordedTrial]) -> SearchSpace:
    """Take out the values that no trial has; the first recorded launch is the default."""
    seen = {name: {(type(t.assignment[name]), t.assignment[name]) for t in trials} for name in space.parameters}
    missing = {
        name: tuple(value for value in each.domain if (type(value), value) not in seen[name])
        for name, each in space.parameters.items()
    }
    first = next((trial.assignment for trial in trials if trial.rung == "full"), {})
    if not any(trial.rung == "probe" for trial in trials):
        space = without_probes(space)
    try:
        return with_defaults(space, first).narrowed({}, {name: values for name, values in missing.items() if values})
    except SpecificationError as error:
        raise SpecificationError(error.problem, path=path, line=1) from error


def _check(path: Path, number: int, trial: RecordedTrial, space: SearchSpace) -> None:
    try:
        space.check(trial.assignment)
        if missing := set(space.parameters) - set(trial.assignment):
            raise SpecificationError(f"the assignment lacks {', '.join(sorted(missing))}")
    except SpecificationError as error:
        raise SpecificationError(error.problem, path=path, line=number, key=error.key or "assignment") from error


def _scalar(text: str) -> Scalar:
    """Return a cell as a number, true or false where it reads like one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text


def _objective(trial: RecordedTrial, levels: Sequence[int]) -> float | None:
    rates = {level.concurrency: level.tok_per_s for level in trial.levels}
    return geometric_mean([rates[level] for level in levels]) if all(level in rates for level in levels) else None
