"""Lines of JSON and rows of CSV, each with its line in the file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from search_spaces.errors import SpecificationError, nearest, plain_message

MAX_BYTES = 64 * 2**20
MAX_CELL_CHARS = 2**20
Model = TypeVar("Model", bound=BaseModel)


def json_lines(path: Path, text: str) -> Iterator[tuple[int, object]]:
    """Yield the value of each line that is not empty, with the line's number.

    Raises:
        SpecificationError: a line is not JSON.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _json(path, number, line)


def csv_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the rows of a CSV file below its first line, each as column → cell, with the row's last line.

    Raises:
        SpecificationError: a name of a column is missing or there twice, or a row has another number of cells.
    """
    csv.field_size_limit(MAX_CELL_CHARS)
    reader = csv.reader(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), strict=True)
    columns: list[str] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not columns:
                columns = _columns(path, reader.line_num, cells)
            elif len(cells) != len(columns):
                problem = f"{len(cells)} cells, but the first line has {len(columns)} columns"
                raise SpecificationError(problem, path=path, line=reader.line_num)
            else:
                yield reader.line_num, dict(zip(columns, cells, strict=True))
    except csv.Error as error:
        raise SpecificationError(f"not CSV: {error}", path=path, line=reader.line_num) from error


@dataclass(frozen=True, slots=True)
class InLine:
    """What stands in one line of a file: its errors point there."""

    path: Path
    line: int
    key: str = ""

    def error(self, problem: str, *location: str | int) -> SpecificationError:
        """Return an error that points to a key of it."""
        key = ".".join(str(part) for part in (self.key, *location) if part != "")
        return SpecificationError(problem, path=self.path, line=self.line, key=key)


def parsed(path: Path, line: int, data: object, model: type[Model], key: str = "") -> Model:
    """Return what stands in a line (under a key) as a `model`; types are meant: no number is taken for true.

    Raises:
        SpecificationError: with line and key.
    """
    try:
        return model.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        errors = error.errors()
        first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
        problem = plain_message(first["msg"])
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            problem = f"unknown key. {nearest(str(first['loc'][0]), model.model_fields)}"
        raise InLine(path, line, key).error(problem, *first["loc"]) from error


def _json(path: Path, number: int, line: str) -> object:
    try:
        found: object = json.loads(line)
        return found
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SpecificationError(f"not JSON: {why}", path=path, line=number) from error


def _columns(path: Path, line: int, cells: list[str]) -> list[str]:
    for name in cells:
        if not name.strip() or cells.count(name) > 1:
            problem = f"the column {name!r} stands here twice" if name.strip() else "a column without a name"
            raise SpecificationError(problem, path=path, line=line)
    return cells
