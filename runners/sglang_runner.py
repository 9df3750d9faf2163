"""Runs SGLang's server. Facts are of SGLang 0.5.16 unless a line says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from runners import sglang_effects
from runners.contract import EffectProof, EngineSettings, LogLine, Phase, Resolution, Rung, TrialRequest
from runners.engine_dialects import EngineOptions, sglang_resolve
from runners.load_client.job import Api
from runners.ports import free_port
from runners.server_info import saved
from runners.server_runner import ServerRunner
from search_spaces import Assignment, Facts, Scalar


class SglangRunner(ServerRunner):
    """Runner of SGLang."""

    name = "sglang"
    rungs = (Rung.RESOLVE, Rung.PROBE, Rung.DUMMY, Rung.FULL)
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
    info_paths = ("/server_info", "/get_server_info")  # the first one from 0.5.6 on
    info_names = sglang_effects.INFO_NAMES
    variables: ClassVar[Mapping[str, str]] = {
        "SGL_FORCE_SHUTDOWN": "1",  # SIGTERM would wait for running requests without an upper bound
    }

    def resolve_for(
        self, assignment: Assignment, settings: EngineSettings, facts: Facts, accepted: EngineOptions | None
    ) -> Resolution:
        """Return what this version of SGLang would really run."""
        return sglang_resolve.resolve(assignment, settings, facts, accepted)

    def more_options(self) -> Mapping[str, Scalar]:
        """Return a free port for NCCL's rendezvous: left alone, some versions take one that may be taken."""
        return {"nccl-port": free_port()}

    def effects(self, request: TrialRequest, lines: Iterator[LogLine]) -> Iterator[EffectProof]:
        """Yield what the log, and what the server said of itself, prove about the assignment."""
        return sglang_effects.effects(request.assignment, lines, saved(Path(request.artifact_dir)))
