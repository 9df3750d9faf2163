"""A server engine made of the stub server: the real runner base, the real life cycle, no model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from runners import Command, EffectProof, EngineSettings, LogLine, Phase, Resolution, TrialRequest
from runners.engine_dialects import EngineOptions
from runners.load_client.job import Api
from runners.ports import free_port
from runners.server_runner import ChoosePort, ServerRunner
from search_spaces import Assignment, Facts
from tests.support.stub_servers import stub_argv

WITH_WORKER = """
import os, subprocess, sys
subprocess.Popen(["stub::worker", "600"], executable="/bin/sleep")
subprocess.run(sys.argv[1:])
"""
"""A leader with a worker, which lives on when the worker dies."""


class StubEngine(ServerRunner):
    """Runs `tests/support/stub_server.py` as if it were an engine."""

    name = "stub"
    api: Api = "openai"
    usual_port = 8000
    titles = r"stub::"
    death_report_s = 0.5
    phase_patterns = ((r"^loading", Phase.LOAD_WEIGHTS), (r"^listening on", Phase.WARMUP))

    def __init__(
        self,
        choose_port: ChoosePort = free_port,
        *,
        prefix: Sequence[str] = (),
        **options: object,
    ) -> None:
        """Make an engine whose server has these options, started by `prefix`."""
        super().__init__(choose_port)
        self._prefix, self._options = tuple(prefix), options

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return the assignment as it is."""
        return Resolution(assignment=assignment)

    def resolve_for(
        self, assignment: Assignment, settings: EngineSettings, facts: Facts, accepted: EngineOptions | None
    ) -> Resolution:
        """Return the assignment as it is."""
        return self.resolve(assignment, settings, facts)

    def version(self, settings: EngineSettings) -> str:
        """Return the stub's only version."""
        return "1.0"

    def server_command(self, request: TrialRequest, port: int) -> Command:
        """Return the stub's command."""
        return Command(argv=(*self._prefix, *stub_argv(port=port, **self._options)))

    def effects(self, request: TrialRequest, lines: Iterator[LogLine]) -> Iterator[EffectProof]:
        """Yield where the server said that it listens."""
        for line in lines:
            if line.text.startswith("listening on"):
                yield EffectProof(parameter="port", requested="any", effective="one", evidence=line.text)


def with_worker() -> tuple[str, ...]:
    """Return the prefix that makes the stub the child of a leader with a worker."""
    return (sys.executable, "-S", "-c", WITH_WORKER)
