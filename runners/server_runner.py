"""What the runners of all real servers share: a free port, the environment, the launch, the load, the proofs.

A server lives in the user's own Python environment (`settings.python`) and is never imported into ours.
"""

from __future__ import annotations

import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from runners.compile_caches import architecture, cache_root, cache_variables, remove_stale_batons
from runners.contract import (
    Command,
    EffectProof,
    EngineSettings,
    Exit,
    LogLine,
    Phase,
    Resolution,
    Rung,
    RunRecord,
    TrialRequest,
)
from runners.effects import NCCL_DEBUG
from runners.engine_dialects import EngineNotUsableError, EngineOptions, ask_engine, build_command, engine_words
from runners.engine_dialects.few_layers import dummy_settings
from runners.lifecycle import LaunchPlan, launch
from runners.load_client import LoadJob
from runners.load_client.job import Api
from runners.phases import PhasePattern
from runners.ports import HOST, free_port
from runners.resolve_rung import resolve_launch
from runners.server_probes import probe_server, run_probe_batch, server_orders
from runners.server_session import ServerSession
from runners.simulated_acceptance import simulated_acceptance
from search_spaces import Assignment, Facts, Scalar

PORT_ATTEMPTS = 3
PORT_CLASH = re.compile(r"(?i)address already in use|\bport \d+\b.{0,60}\b(?:in use|not available|is used by)")
"""What servers say whose port was taken between our look and theirs."""
ChoosePort = Callable[[Sequence[int], tuple[int, int] | None], int]
"""Distances to further ports, first and last port to choose from (None: any) → a free port."""
REFUSED_CODE = 2
"""Exit code of a launch that was refused before it began, as argument parsers have it."""
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""What lies in the folder from which a search is started must not be imported in the place of the engine's packages."""
DRAIN_S = 1.0
"""How long the engine's other processes may go on after its leader: their last words are in the log by then."""


class ServerRunner(ABC):
    """Runner of one kind of server; the subclasses say what is particular to it."""

    name: str
    rungs: tuple[Rung, ...] = (Rung.PROBE, Rung.FULL)
    api: Api
    phase_patterns: tuple[PhasePattern, ...]
    titles: str
    """Regular expression for the titles of its processes."""
    port_distances: tuple[int, ...] = ()
    """Distances from its port to others that it takes unasked."""
    usual_port: int
    """Port of the command that a user is given to repeat a launch."""
    death_report_s: float = 5.0
    """How long it takes at most to end by itself after one of its processes died: vLLM 0.32 needs up to 4.7 s."""
    info_paths: tuple[str, ...] = ()
    """Pages on which it says what it runs, the newest first."""
    info_names: tuple[str, ...] = ()
    """What of its answer is kept as evidence."""
    variables: ClassVar[Mapping[str, str]] = {}
    """Environment that it needs to be run by a program, unless the user has set it."""

    def __init__(self, choose_port: ChoosePort = free_port) -> None:
        """Make a runner that finds its ports with `choose_port`, given `port_distances` and the ports of the slot."""
        self._choose_port = choose_port

    def resolve(self, assignment: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        """Return what the engine would really run, as far as its version is known to say so without a launch."""
        try:
            accepted = accepted_options(self.name, settings.python)
        except EngineNotUsableError:  # a launch will say so, with what to do
            accepted = None
        return self.resolve_for(assignment, settings, facts, accepted)

    @abstractmethod
    def resolve_for(
        self, assignment: Assignment, settings: EngineSettings, facts: Facts, accepted: EngineOptions | None
    ) -> Resolution:
        """Return what this version of the engine would really run."""

    def server_command(self, request: TrialRequest, port: int) -> Command:
        """Return the command of a server on this port of the loopback interface.

        Raises:
            ValueError: the installed engine cannot be told what the request asks for.
            EngineNotUsableError: there is no such engine in the user's environment.
        """
        accepted = accepted_options(self.name, request.settings.python)
        return build_command(request, accepted, host=HOST, port=port, extra=self.more_options())

    def more_options(self) -> Mapping[str, Scalar]:
        """Return further options of a launch, where the version has them."""
        return {}

    @abstractmethod
    def effects(self, request: TrialRequest, lines: Iterator[LogLine]) -> Iterator[EffectProof]:
        """Yield what the log, and what the server said of itself, prove about the parameters of the assignment."""

    def version(self, settings: EngineSettings) -> str:
        """Return the version of the engine in the user's environment."""
        return accepted_options(self.name, settings.python).version

    def command(self, request: TrialRequest) -> Command:
        """Return the exact command of a full launch, for the user to repeat it, on the engine's usual port."""
        acceptance = simulated_acceptance(request)
        return acceptance.applied_to(self.server_command(acceptance.request, self.usual_port), self.name)

    def run(self, request: TrialRequest) -> RunRecord:
        """Launch the server, put it under load, stop it, and return the evidence.

        At the resolve rung nothing is launched; at the dummy rung a completion takes the place of the load.
        """
        started = time.monotonic()
        Path(request.artifact_dir).mkdir(parents=True, exist_ok=True)
        if request.rung is Rung.RESOLVE:
            return self._resolve(request, started)
        if request.rung is Rung.DUMMY:
            settings = dummy_settings(self.name, request.settings)
            request = request.model_copy(update={"settings": settings})
        for attempt in range(1, PORT_ATTEMPTS + 1):
            port = self._choose_port(self.port_distances, request.slot.ports if request.slot else None)
            try:
                acceptance = simulated_acceptance(request)
                command = acceptance.applied_to(self.server_command(acceptance.request, port), self.name)
            except (ValueError, EngineNotUsableError) as error:
                return _refused(request, str(error), started)
            record = self._launch(acceptance.request, command, port)
            if attempt == PORT_ATTEMPTS or not (_is_port_clash(record) and record.leftovers.is_clean):
                break
            Path(record.log_path or "").rename(Path(request.artifact_dir) / f"engine.attempt-{attempt}.log")
        proofs = tuple(self.effects(request, _lines(record))) + acceptance.proofs
        measurement = acceptance.labelled(record.measurement)
        wall_s = time.monotonic() - started
        return record.model_copy(update={"effects": proofs, "measurement": measurement, "wall_s": wall_s})

    def run_probes(self, requests: Sequence[TrialRequest]) -> list[RunRecord]:
        """Probe the collectives that the requests select, with the torch of the engine's own environment."""
        settings = requests[0].settings
        try:
            release = accepted_options(self.name, settings.python).release
        except EngineNotUsableError:  # what depends on the version is then left out; a launch will say why
            release = ()
        server = probe_server(settings, requests[0].environment)
        plain = requests[0].model_copy(update={"variables": {}})
        variables = self._complete(server, plain).env if release else server.env
        orders = [server_orders(request, release) for request in requests]
        return run_probe_batch(orders, Command(argv=server.argv, env=variables))

    def _resolve(self, request: TrialRequest, started: float) -> RunRecord:
        try:
            acceptance = simulated_acceptance(request)
            command = self.server_command(acceptance.request, self.usual_port)
            command = acceptance.applied_to(command, self.name)
            words = engine_words(request.options, accepted_options(self.name, request.settings.python))
        except (ValueError, EngineNotUsableError) as error:
            return _refused(request, str(error), started)
        return resolve_launch(self.name, request, self._complete(command, request), words)

    def _launch(self, request: TrialRequest, command: Command, port: int) -> RunRecord:
        folder = Path(request.artifact_dir)
        warmup_s = request.deadlines.phase_s.get(Phase.WARMUP, request.deadlines.phase_default_s)
        session = ServerSession(
            self._job(request, port),
            port,
            folder,
            completion_timeout_s=2 * warmup_s,
            death_report_s=self.death_report_s,
            is_loaded=request.rung is not Rung.DUMMY,
            info_paths=self.info_paths,
            info_names=self.info_names,
        )
        plan = LaunchPlan(
            phase_patterns=self.phase_patterns,
            serve=session.serve,
            serve_from=Phase.WARMUP,
            essential=self.titles,
            death_grace_s=self.death_report_s,
            port=port,
            drain_s=DRAIN_S,
            has_faulthandler=True,
            tools=(Path(request.settings.python).parent,) if request.settings.python else (),
        )
        record = launch(request, self._complete(command, request), plan)
        is_served = record.exit.cause == "served" and session.has_completed
        return record.model_copy(update={"passed": True}) if is_served and not session.is_loaded else record

    def _complete(self, command: Command, request: TrialRequest) -> Command:
        """Add the compile caches and what the engine needs to be run by a program."""
        version = self.version(request.settings)
        root = cache_root(
            request.environment, self.name, version, architecture(request.settings.device), slot=request.slot
        )
        remove_stale_batons(root)
        says_nccl = any(name.startswith("NCCL_") for name in request.variables)
        wanted = {**SAFE_PATH, **self.variables, **(NCCL_DEBUG if says_nccl else {})}
        ours = {name: text for name, text in wanted.items() if name not in request.environment}
        return Command(argv=command.argv, env={**ours, **cache_variables(request.environment, root), **command.env})

    def _job(self, request: TrialRequest, port: int) -> LoadJob:
        settings = request.settings
        name = settings.options.get("served-model-name", settings.model)
        return LoadJob(
            base_url=f"http://{HOST}:{port}",
            api=self.api,
            model=str(name),
            workload=request.workload,
            stop=request.stop,
            vocabulary_size=_vocabulary_size(settings.model),
            longest_tokens=_longest_tokens(request),
            dataset=request.workload.dataset,
            records_path=str(Path(request.artifact_dir) / "requests.jsonl"),
        )


def _refused(request: TrialRequest, problem: str, started: float) -> RunRecord:
    """Return the evidence of a launch that did not begin: a log with the one line that says why."""
    line = f"agent: error: {problem}"
    log = Path(request.artifact_dir) / "engine.log"
    log.write_text(line + "\n", encoding="utf-8")
    return RunRecord(
        exit=Exit(code=REFUSED_CODE, cause="exited"),
        phase=Phase.RESOLVE,
        wall_s=time.monotonic() - started,
        log_path=str(log),
        log_lines=1,
        excerpt=(LogLine(number=1, text=line),),
    )


def _is_port_clash(record: RunRecord) -> bool:
    """True when the server never served because its port was taken: ours to try again, and nobody's fault."""
    is_early = Phase.READY not in record.phase_s and record.exit.cause not in ("cancelled", "lost")
    return is_early and any(PORT_CLASH.search(line.text) for line in record.excerpt)


def _lines(record: RunRecord) -> Iterator[LogLine]:
    if record.log_path is None or not Path(record.log_path).exists():
        return
    with Path(record.log_path).open(encoding="utf-8", errors="replace") as log:
        for number, text in enumerate(log, start=1):
            yield LogLine(number=number, text=text.rstrip("\n"))


def _longest_tokens(request: TrialRequest) -> int | None:
    """Return how many tokens a prompt and its answer may have together, as far as is said for all trials alike."""
    for name in ("max-model-len", "context-length"):
        if str(request.settings.options.get(name, "")).isdigit():
            return int(str(request.settings.options[name]))
    found = _model_config(request.settings.model)
    length = found.get("max_position_embeddings") or found.get("text_config", {}).get("max_position_embeddings")
    return int(length) if length else None


def _vocabulary_size(model: str | None) -> int:
    """Return the size of a local model's vocabulary; for a model of the hub, one that every model of today has."""
    known, content = LoadJob.model_fields["vocabulary_size"].default, _model_config(model)
    return int(content.get("vocab_size") or content.get("text_config", {}).get("vocab_size") or known)


def _model_config(model: str | None) -> dict[str, Any]:
    """Return what a local model says of itself; nothing for a model of the hub."""
    config = Path(model or "") / "config.json"
    if model is None or not config.is_file():
        return {}
    content: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
    return content


@cache
def accepted_options(engine: str, python: str | None) -> EngineOptions:
    """Return what the engine in the user's environment accepts, asked once in this process.

    Raises:
        EngineNotUsableError: there is none.
    """
    return ask_engine(engine, python, os.environ)
