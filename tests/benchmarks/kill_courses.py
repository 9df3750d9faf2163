"""How studies are killed by `kill_resume`: what runs, how large a study is, and how far apart the kills are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from tests.support import victims

ROOT = Path(__file__).parents[2]
SYNTHETIC = "tests.support.synthetic_engine:ProcessSyntheticEngine"


@dataclass(frozen=True)
class Course:
    """What is killed: the engine's options, how large a study is, and how far apart the kills are."""

    options: tuple[str, ...]
    budget: int
    longest_pause_s: float
    kills_each: int
    """Kills after which a study is left to end in peace."""
    weights: Mapping[str, int] = field(default_factory=lambda: victims.WEIGHTS)
    at_once: float = 0.0
    """Share of the kills that follow within a second on the one before."""


def courses(engine: str, models: Path | None) -> Course:
    """Return how studies of an engine are killed."""
    if engine == "torch":
        return Course(("--option", "preset=tiny"), budget=6, longest_pause_s=20.0, kills_each=40)
    if engine == "synthetic":
        options = ("--engine", SYNTHETIC, "--space", "torch", "--device", "cpu")
        return Course(options, budget=14, longest_pause_s=8.0, kills_each=40)
    if models is None:
        raise click.UsageError("--engine vllm needs --python and --models")
    return Course(_vllm_options(models), budget=6, longest_pause_s=60.0, kills_each=15)


def _vllm_options(models: Path) -> tuple[str, ...]:
    fixed = {"max-model-len": "2048", "gpu-memory-utilization": "0.3", "enforce-eager": "true"}
    options = [word for name, value in fixed.items() for word in ("--option", f"{name}={value}")]
    sizes = ("--concurrency", "1,4", "--prompt-tokens", "32", "--output-tokens", "32", "--requests", "8")
    space = ("--space", str(ROOT / "tests" / "engines" / "vllm_ngram.yaml"))
    server = ("--engine", "vllm", "--model", str(models / "tiny"), "--tp", "1", "--device", "cpu")
    return (*server, *options, "--env", "VLLM_CPU_KVCACHE_SPACE=1", *sizes, *space)
