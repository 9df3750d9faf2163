"""What is taken away of a study: the exact command of its best arm, with references in the place of secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent.errors import UsageError
from agent.modelled import modelled_name
from agent.redaction import MASK, redact_argv, redact_mapping
from agent.requests import request_of
from agent.store.manifest import Manifest
from agent.summary import Arm, StudySummary
from runners import Command, Runner
from runners.engine_dialects import EngineNotUsableError
from search_spaces import Assignment


@dataclass(frozen=True, slots=True)
class Reference:
    """A secret that is not written down: the name of the variable that has to hold it."""

    variable: str


Word = tuple[str | Reference, ...]
"""One argument or value: plain text, with references where a secret stood."""


@dataclass(frozen=True, slots=True)
class Takeaway:
    """The best configuration of a study, ready to be written down."""

    study: str
    trial: int
    engine: str
    version: str
    argv: tuple[Word, ...]
    env: Mapping[str, Word]
    assignment: Assignment
    said: str
    """What was found, in one sentence, for the head of a file."""
    num_gpus: int
    """GPUs that the launch takes; 0 on CPUs."""
    mounts: tuple[str, ...]
    """Local folders that the engine reads (model, draft model), as absolute paths."""
    image: str | None
    """Container image that holds the engine, where there is a usual one or somebody named one."""
    port: int | None
    """Port that the engine serves on; None for an engine that serves nobody."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Variables that the reader has to set, each once."""
        words = (*self.argv, *self.env.values())
        return tuple(dict.fromkeys(part.variable for word in words for part in word if isinstance(part, Reference)))


def takeaway(summary: StudySummary, best: Arm, runner: Runner, manifest: Manifest, image: str | None) -> Takeaway:
    """Return the best configuration of a study as it is taken away.

    Raises:
        UsageError: the study was a model's, or its engine is not there any more.
    """
    settings = manifest.settings.engine
    if name := modelled_name(settings, manifest.facts):
        raise UsageError(f"study {summary.study} was answered by the modelled node {name}: there is nothing to start")
    try:
        command = runner.command(request_of(best.first, manifest, environment={}))
    except EngineNotUsableError as error:
        raise UsageError(f"the command needs the engine's own words, and it cannot be asked: {error}") from error
    version = str(manifest.facts.get("engine_version", "")).removeprefix(f"{settings.engine} ").strip("()")
    named = (settings.model, settings.draft_model)
    return Takeaway(
        study=summary.study,
        trial=best.first.number,
        engine=settings.engine,
        version=version,
        argv=tuple(_words(command)),
        env=_variables(command.env),
        assignment=best.assignment,
        said=_said(summary, best),
        num_gpus=settings.num_ranks if settings.device == "cuda" else 0,
        mounts=tuple(dict.fromkeys(path for path in named if path and Path(path).is_absolute())),
        image=image or usual_image(settings.engine, version),
        port=_port(command.argv),
    )


def usual_image(engine: str, version: str) -> str | None:
    """Return the image in which an engine's makers publish a version, or None.

    Source: the deployment pages of vLLM (`vllm/vllm-openai`, tags `vX.Y.Z`) and SGLang (`lmsysorg/sglang`, the same).
    """
    repository = {"vllm": "vllm/vllm-openai", "sglang": "lmsysorg/sglang"}.get(engine)
    release = re.match(r"\d+\.\d+\.\d+(\.?post\d+)?", version)
    return f"{repository}:v{release[0]}" if repository and release and "cpu" not in version else None


def _said(summary: StudySummary, best: Arm) -> str:
    gain = f", {summary.gain:.2f} times the baseline without speculation" if summary.gain is not None else ""
    verdict = f" ({summary.verdict})" if summary.verdict else ""
    return f"{best.mean:.1f} output tokens/s over {len(best.values)} launches{gain}{verdict}"


def _words(command: Command) -> Iterator[Word]:
    flag = ""
    for given, clean in zip(command.argv, redact_argv(command.argv), strict=True):
        if given.startswith("--"):
            flag = given.partition("=")[0]
        yield _referring(clean, _variable_of(flag)) if clean != given else (given,)


def _variables(env: Mapping[str, str]) -> dict[str, Word]:
    clean = redact_mapping(env)
    return {name: _referring(clean[name], name) if clean[name] != env[name] else (env[name],) for name in sorted(env)}


def _referring(masked: str, variable: str) -> Word:
    """Put a reference where the mask stands."""
    parts: list[str | Reference] = []
    for index, text in enumerate(masked.split(MASK)):
        parts += [Reference(variable)] * (index > 0) + [text] * bool(text)
    return tuple(parts)


def _variable_of(flag: str) -> str:
    return re.sub(r"\W+", "_", flag.strip("-")).upper() or "SECRET"


def _port(argv: Sequence[str]) -> int | None:
    after = dict(pairwise(argv)).get("--port", "")
    return int(after) if after.isdigit() else None
