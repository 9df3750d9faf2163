"""Runs vLLM's OpenAI server. Facts are of vLLM 0.32 unless a line says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from runners import vllm_effects
from runners.contract import Command, EffectProof, EngineSettings, LogLine, Phase, Resolution, TrialRequest
from runners.load_client.job import Api
from runners.ports import HOST
from runners.server_runner import ServerRunner
from search_spaces import Assignment, Facts


class VllmRunner(ServerRunner):
    """Runner of vLLM."""

    name = "vllm"
    package = "vllm"
    api: Api = "openai"
    usual_port = 8000
    titles = r"VLLM::"
    phase_patterns = (
        (r"world_size=\d+ rank=\d+ .*backend=|rank \d+ in world size \d+ is assigned", Phase.INIT_DISTRIBUTED),
        (r"Starting to load model", Phase.LOAD_WEIGHTS),
        (r"Model loading took|Loading weights took", Phase.ALLOC_KV),
        (r"Dynamo bytecode transform|for vLLM's torch\.compile|torch\.compile takes", Phase.COMPILE),
        (r"Capturing CUDA graph|Graph capturing finished", Phase.CAPTURE_GRAPHS),
        (r"Application startup complete", Phase.WARMUP),
    )
    variables: ClassVar[Mapping[str, str]] = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what would run."""
        return Resolution(assignment=assignment)

    def server_command(self, request: TrialRequest, port: int) -> Command:
        """Return the command."""
        settings = request.settings
        script = Path(settings.python or "python").with_name("vllm")
        argv = [str(script), "serve", str(settings.model), "--host", HOST, "--port", str(port)]
        argv += ["--tensor-parallel-size", str(settings.num_ranks)]
        for name, value in {**settings.options, **request.options}.items():
            argv += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return Command(argv=tuple(argv), env={**settings.variables, **request.variables})

    def effects(self, request: TrialRequest, lines: Iterator[LogLine]) -> Iterator[EffectProof]:
        """Yield what the log proves about the assignment."""
        return vllm_effects.effects(request.assignment, lines)
