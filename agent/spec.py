"""What the user writes, in study.yaml or as options, before it is checked against the node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator

from agent.errors import UsageError
from agent.home import name_problem
from agent.redaction import redact_json
from runners import Frozen, Rung
from search_spaces import SpecificationError, UnreadableFileError, YamlDocument, nearest, plain_message
from search_spaces.scalar import StrictScalar

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAY_BE_SECRET = ("environment", "options")
"""Keys whose values no message repeats."""
SHOWN_CHARS = 60
"""How much of a wrong value a message repeats."""
MOST_LAUNCHES = 1_000_000
MOST_RANKS = 4096
MOST_TOKENS = 2**31 - 1
LARGEST_SEED = 2**32 - 1
"""What the samplers take."""
LONGEST_S = 10 * 365 * 24 * 3600.0


def _as_text(value: object) -> object:
    """A number in YAML is the text that the engine reads; what YAML takes for true and false would not be."""
    if isinstance(value, bool):
        raise ValueError("write it in quotes, as the engine is to read it")
    return str(value) if isinstance(value, int | float) else value


class StudySpec(Frozen):
    """A study as it is asked for. Options of the command line override the file's keys of the same name."""

    name: str | None = None
    """Study name; by default the engine's name, with a number where that is taken."""
    engine: str = "torch"
    space: str | None = None
    """Catalogue name or path of a space; by default the engine's own."""
    node: str | None = None
    """Node model that the replay engine answers from: a shipped name or a path."""
    budget: int = Field(default=40, ge=1, le=MOST_LAUNCHES)
    """Launches at the top rung, failures and repeats included."""
    start_rung: Rung = Rung.RESOLVE
    """The cheapest rung that assignments climb from; a dearer one leaves out those below it."""
    max_rung: Rung = Rung.FULL
    """The dearest rung that assignments climb to; below `full` nothing is launched with the real model."""
    probe_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Largest share of node time that the rungs below `full` may take together."""
    time_budget: str | None = None
    """Longest time, such as 90s, 30m or 2h."""
    tp: int | None = Field(default=None, ge=1, le=MOST_RANKS)
    """Ranks of the engine; by default every GPU, or 2 on a node without."""
    device: str | None = Field(default=None, pattern="^(cuda|cpu)$")
    concurrency: tuple[Annotated[int, Field(le=MOST_LAUNCHES)], ...] = (1, 8)
    prompt_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    output_tokens: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    requests: int | None = Field(default=None, ge=1, le=MOST_TOKENS)
    workload: str | None = None
    """A built-in workload (chat, code, long-context) or a JSONL file of prompts; by default prompts of one length."""
    arrival_rate: float | None = Field(default=None, gt=0, le=MOST_TOKENS)
    """Requests that arrive in a second at random; by default as many as the level says are always in flight."""
    slo: Mapping[str, float | Mapping[str, float]] = Field(default_factory=dict)
    """Limits in milliseconds: `ttft_ms: 500` for each request, `tpot_ms: {p50: 20}` for so many of them."""
    objective: str | tuple[str, ...] = ()
    """What is searched for: a figure, perhaps at one level, as in `output_tok_per_s@8`; several give a front."""
    seed: int = Field(default=0, ge=0, le=LARGEST_SEED)
    pin: Mapping[str, StrictScalar] = Field(default_factory=dict)
    """Parameters held at one value."""
    exclude: Mapping[str, tuple[StrictScalar, ...]] = Field(default_factory=dict)
    """Values that must not be tried."""
    options: Mapping[str, StrictScalar] = Field(default_factory=dict)
    """Fixed flags of the engine, long name without dashes → value."""
    environment: Mapping[str, Annotated[str, BeforeValidator(_as_text)]] = Field(default_factory=dict)
    """Fixed environment variables of the engine, on top of the user's own."""
    model: str | None = None
    """Model that a server serves: a folder, or a name of a hub."""
    draft: str | None = None
    """Draft model for speculation: a folder, or a name of a hub."""
    engine_python: str | None = None
    """Python of the environment that holds the engine, or the folder of that environment."""
    base_cmd: str | tuple[str, ...] | None = None
    """The command that the user runs today: where the search starts, and what stays fixed."""
    stop_early: bool = True
    """Whether a launch that is clearly slower than the incumbent ends its load early."""
    launch_noise: float | None = Field(default=None, gt=0, lt=1)
    """How much launches of one assignment differ here (standard deviation, as a share), where it is known."""
    rules: str | None = None
    """File with rules of the user's own, by which failures are classified beside the built-in ones."""
    storage: str | None = None
    tracking_uri: str | None = None
    ray_address: str | None = None
    like_node: str | None = None
    """Host name or address of a node of the cluster: the study is of it and of those like it. By default, of the alike
    nodes with the most GPUs together."""
    inherit: bool = True
    """Whether the study starts from the dead ends of the earlier studies of its storage."""
    trials_per_node: int = Field(default=1, ge=1, le=MOST_RANKS)
    """Trials at the same time."""
    accept_interference: bool = False
    """Run several trials at the same time although nobody measured what they do to each other, or it is too much."""
    _document: YamlDocument | None = PrivateAttr(default=None)
    """The file that it was read from, if any."""
    _options: frozenset[str] = PrivateAttr(default=frozenset())
    """The keys that were given as options."""

    def error(self, problem: str, key: str, *below: str) -> UsageError | SpecificationError:
        """Return an error that points to where `key` was written: to the option, or to the line in the file."""
        if self._document is not None and key not in self._options:
            return self._document.error(problem, key, *below)
        return UsageError(" ".join([_option(key), *below]) + f": {problem}")

    @field_validator("name")
    @classmethod
    def _is_a_plain_name(cls, name: str | None) -> str | None:
        if name is not None and (problem := name_problem(name)):
            raise ValueError(problem)
        return name

    @field_validator("environment")
    @classmethod
    def _are_variables(cls, variables: Mapping[str, str]) -> Mapping[str, str]:
        for name in variables:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"'{name}' is no name of a variable: letters, digits and '_'")
        return variables

    @field_validator("concurrency")
    @classmethod
    def _levels_are_positive(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        if not levels or min(levels) < 1 or len(set(levels)) != len(levels):
            raise ValueError("needs different levels of at least 1, such as 1 and 8")
        return levels

    @field_validator("time_budget")
    @classmethod
    def _is_a_duration(cls, text: str | None) -> str | None:
        if text is not None:
            seconds_of(text)
        return text

    @property
    def time_budget_s(self) -> float | None:
        """The time budget in seconds."""
        return None if self.time_budget is None else seconds_of(self.time_budget)


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as `90s`, `30m` or `2h`; a bare number is seconds."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2] or "s"] if match else 0.0
    if not 0 < seconds <= LONGEST_S:
        raise ValueError("not a duration up to ten years: write 90s, 30m or 2h")
    return seconds


def load_spec(path: Path | None, overrides: Mapping[str, object]) -> StudySpec:
    """Return the specification of a file (or the defaults) with the options that were given on top.

    Raises:
        SpecificationError: with file, line and key.
        UsageError: for an option.
    """
    from pydantic import ValidationError

    try:
        document = None if path is None else YamlDocument(path)
    except UnreadableFileError as error:
        raise UsageError(f"--spec {error}") from error
    written = {} if document is None else document.validate(StudySpec).model_dump(exclude_unset=True)
    try:
        spec = StudySpec.model_validate({**written, **overrides})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{_option(str(first['loc'][0]))} {_problem(first['type'], first)}") from error
    spec._document, spec._options = document, frozenset(overrides)
    return spec


def _option(key: str) -> str:
    return "--" + {"options": "option", "environment": "env"}.get(key, key.replace("_", "-"))


def _problem(kind: str, error: Mapping[str, object]) -> str:
    """Return what pydantic found, with the value (not all of a long one) and in the words of somebody who typed it."""
    if kind == "extra_forbidden":
        return f"is not a key of a study: {nearest(str(error['loc'][0]), StudySpec.model_fields)}"  # type: ignore[index]
    given, message = error["input"], str(error["msg"])
    if str(error["loc"][0]) in MAY_BE_SECRET:  # type: ignore[index]
        given = list(given) if isinstance(given, Mapping) else "…"  # names alone
    shown = repr(redact_json(given, str(error["loc"][-1])))  # type: ignore[index]
    shown = shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}…"
    return f"{shown}: {plain_message(message)}"
