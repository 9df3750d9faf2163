"""The prompts of a workload: drawn from its seed or taken from a file, the same in every trial."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runners.load_client.job import LoadJob
from runners.load_client.lengths import BUILT_IN
from search_spaces import SpecificationError, json_lines, parsed, read_text

EDGE = 20
"""One part in this many of the vocabulary is left out at either end: special tokens (end of text, padding, images)
stand first in some vocabularies and last in others, and a model may treat them as commands."""
WARMUP_OUTPUT_TOKENS = 32
MAX_DATASET_BYTES = 2**30
MOST_TOKENS = 2**31
"""No vocabulary and no context is as large."""


class DatasetError(ValueError):
    """A dataset that cannot be used: which file and line, and what a line must hold."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request sends: either token ids or text."""

    output_tokens: int
    input_ids: tuple[int, ...] | None = None
    text: str | None = None


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")  # data sets carry columns of their own

    prompt: str | None = Field(default=None, min_length=1)
    input_ids: tuple[Annotated[int, Field(ge=0, lt=MOST_TOKENS)], ...] | None = Field(default=None, min_length=1)
    output_tokens: int | None = Field(default=None, ge=1, lt=MOST_TOKENS)

    @model_validator(mode="after")
    def _one_of_both(self) -> _Line:
        if (self.prompt is None) == (self.input_ids is None):
            raise ValueError("needs either `prompt` (text) or `input_ids` (a list of token ids)")
        return self


def prompts(job: LoadJob) -> Iterator[tuple[int, list[Prompt], list[Prompt]]]:
    """Return each concurrency level, in the order of measuring, with its warm-up prompts and its counted prompts.

    No prompt comes twice while the dataset lasts: a server with a prefix cache would answer it too fast. Lines of a
    dataset are dealt out to the levels from the lowest one up, whatever the order of measuring is.

    Raises:
        DatasetError: the dataset cannot be read.
    """
    rows = _shuffled_rows(job)
    taken = 0
    dealt: dict[int, tuple[list[Prompt], list[Prompt]]] = {}
    for concurrency in sorted(job.workload.levels):
        warmups = job.num_warmups(concurrency)
        wanted = warmups + job.num_requests(concurrency)
        if rows is None:
            drawn = [_drawn(job, concurrency, index) for index in range(-warmups, wanted - warmups)]
        else:
            drawn = [rows[index % len(rows)] for index in range(taken, taken + wanted)]
        taken += wanted
        dealt[concurrency] = [_shortened(prompt) for prompt in drawn[:warmups]], drawn[warmups:]
    for concurrency in job.workload.levels:
        yield concurrency, *dealt[concurrency]


def _drawn(job: LoadJob, concurrency: int, index: int) -> Prompt:
    """Return a prompt that depends on its level and place alone, so that another level more or less changes nothing."""
    source = random.Random(f"{job.workload.seed}/{concurrency}/{index}")  # noqa: S311 (a workload, not a secret)
    if job.workload.lengths is not None:
        length, answer = BUILT_IN[job.workload.lengths].draw(source)
        return Prompt(output_tokens=answer, input_ids=_ids(job, source, _fitting(job, length, answer)))
    length = source.randint(min(job.shortest_prompt_tokens or job.prompt_tokens, job.prompt_tokens), job.prompt_tokens)
    return Prompt(output_tokens=job.output_tokens, input_ids=_ids(job, source, length))


def _ids(job: LoadJob, source: random.Random, length: int) -> tuple[int, ...]:
    edge = max(1, job.vocabulary_size // EDGE)
    return tuple(source.randrange(edge, job.vocabulary_size - edge) for _ in range(length))


def _fitting(job: LoadJob, prompt_tokens: int, output_tokens: int) -> int:
    """Return the length of a prompt that leaves room for its answer."""
    room = prompt_tokens if job.longest_tokens is None else job.longest_tokens - output_tokens
    return max(1, min(prompt_tokens, room))


def _shuffled_rows(job: LoadJob) -> list[Prompt] | None:
    if job.dataset is None:
        return None
    path, known = Path(job.dataset), job.workload.dataset_sha256
    if known is not None and digest_of(path) != known:
        raise DatasetError(f"dataset {path}: it has changed since the study began; begin a new study for it")
    rows = read_dataset(path, job.output_tokens)
    random.Random(job.workload.seed).shuffle(rows)  # noqa: S311 (a workload, not a secret)
    return rows


def read_dataset(path: Path, output_tokens: int) -> list[Prompt]:
    """Return the prompts of a JSONL file in its order; a line without `output_tokens` gets those given.

    Raises:
        DatasetError: the file cannot be read, a line is not a prompt, or there is none.
    """
    try:
        text = read_text(path, MAX_DATASET_BYTES)
        found = [_prompt(row, output_tokens) for row in _rows(path, text)]
    except SpecificationError as error:
        raise DatasetError(f"dataset: {error}; give a JSONL file of prompts") from error
    if not found:
        raise DatasetError(f"dataset: {path}:1: no prompts; each line needs `prompt` or `input_ids`")
    return found


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a dataset.

    Raises:
        DatasetError: the file cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DatasetError(f"dataset {path}: {error.strerror}; give a readable JSONL file") from error


def _rows(path: Path, text: str) -> Iterator[_Line]:
    return (parsed(path, number, value, _Line) for number, value in json_lines(path, text))


def _prompt(line: _Line, output_tokens: int) -> Prompt:
    return Prompt(output_tokens=line.output_tokens or output_tokens, input_ids=line.input_ids, text=line.prompt)


def _shortened(prompt: Prompt) -> Prompt:
    """Return a warm-up: the whole prompt, so that its length is seen, and a short answer."""
    length = min(prompt.output_tokens, WARMUP_OUTPUT_TOKENS)
    return Prompt(output_tokens=length, input_ids=prompt.input_ids, text=prompt.text)
