"""Runs vLLM's OpenAI server. Facts are of vLLM 0.32 unless a line says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from runners import vllm_effects
from runners.contract import EffectProof, EngineSettings, LogLine, Phase, Resolution, Rung, TrialRequest
from runners.engine_dialects import EngineOptions, vllm_resolve
from runners.load_client.job import Api
from runners.server_runner import ServerRunner
from search_spaces import Assignment, Facts


class VllmRunner(ServerRunner):
    """Runner of vLLM."""

    name = "vllm"
    rungs = (Rung.RESOLVE, Rung.PROBE, Rung.DUMMY, Rung.FULL)
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

    def resolve_for(
        self, assignment: Assignment, settings: EngineSettings, facts: Facts, accepted: EngineOptions | None
    ) -> Resolution:
        """Return what this version of vLLM would really run."""
        return vllm_resolve.resolve(assignment, settings, facts, accepted)

    def effects(self, request: TrialRequest, lines: Iterator[LogLine]) -> Iterator[EffectProof]:
        """Yield what the log proves about the assignment."""
        return vllm_effects.effects(request.assignment, lines)
