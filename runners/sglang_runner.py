"""Runs SGLang's server. Facts are of SGLang 0.5.16 unless a line says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from runners import sglang_effects
from runners.contract import Command, EffectProof, EngineSettings, LogLine, Phase, Resolution, TrialRequest
from runners.load_client.job import Api
from runners.ports import HOST
from runners.server_runner import ServerRunner
from search_spaces import Assignment, Facts


class SglangRunner(ServerRunner):
    """Runner of SGLang."""

    name = "sglang"
    package = "sglang"
    api: Api = "sglang"
    usual_port = 30000
    titles = r"sglang::"
    port_distances = (233, 234, 235, 236, 237, 238, 239)
    phase_patterns = (
        (r"Init (?:torch distributed|parallel) begin", Phase.INIT_DISTRIBUTED),
        (r"Load weight begin", Phase.LOAD_WEIGHTS),
        (r"Load weight end", Phase.ALLOC_KV),
        (r"Memory pool end", Phase.COMPILE),
        (r"Capture .{0,24}(?:cuda|CUDA) graph begin", Phase.CAPTURE_GRAPHS),
        (r"The server is fired up and ready to roll", Phase.WARMUP),
    )
    variables: ClassVar[Mapping[str, str]] = {
        "SGL_FORCE_SHUTDOWN": "1",  # SIGTERM would wait for running requests without an upper bound
    }

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what would run."""
        return Resolution(assignment=assignment)

    def server_command(self, request: TrialRequest, port: int) -> Command:
        """Return the command."""
        settings = request.settings
        argv = [settings.python or "python", "-m", "sglang.launch_server", "--model-path", str(settings.model)]
        argv += ["--host", HOST, "--port", str(port), "--tp-size", str(settings.num_ranks)]
        for name, value in {**settings.options, **request.options}.items():
            argv += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return Command(argv=tuple(argv), env={**settings.variables, **request.variables})

    def effects(self, request: TrialRequest, lines: Iterator[LogLine]) -> Iterator[EffectProof]:
        """Yield what the log proves about the assignment."""
        return sglang_effects.effects(request.assignment, lines)
