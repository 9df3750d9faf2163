"""The resolve rung of real servers: the engine's own argument resolution, asked without a launch.

A refusal is evidence like that of a launch: a log, an exit code, the phase `resolve`. An engine that cannot be asked,
or that does not answer in time, says nothing: such a record is `lost`, and blames nothing.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from runners.contract import Command, EngineSettings, Exit, LogLine, Phase, RunRecord, TrialRequest
from runners.engine_dialects import EngineNotUsableError
from runners.engine_dialects.warm_resolver import Answer, WarmResolver
from runners.shown import Shown
from search_spaces import Scalar

EXCERPT_LINES = 60
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
"""Set for studies on the CPU. On GPUs they stay visible: vLLM refuses more ranks than it sees GPUs, and both engines
choose defaults by architecture. vLLM asks NVML; SGLang may open a context in the child, which ends with it."""

_resolvers: dict[str, WarmResolver] = {}
_lock = threading.Lock()
"""Held for as long as a question is being answered."""


def resolve_launch(engine: str, request: TrialRequest, command: Command, asked: Mapping[str, str]) -> RunRecord:
    """Return what the engine makes of a launch's arguments.

    Args:
        engine: `sglang` or `vllm`.
        request: The launch; what the engine prints goes into its folder.
        command: How it would be started: Python, `-m`, module, and the arguments.
        asked: Option of the request → the engine's word for it, for those whose resolved value is wanted.
    """
    started = time.monotonic()
    log = Path(request.artifact_dir) / "engine.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _lock:
            resolver = _resolver(engine, request)
            name = str(request.trial)
            answer = resolver.resolve(name, command.argv[3:], command.env, list(asked.values()), log)
    except EngineNotUsableError as error:
        log.write_text(f"agent: not resolved: {error}\n", encoding="utf-8")
        return _record(request, command, log, Exit(cause="lost"), started)
    if answer.end == "no_answer":
        with log.open("a", encoding="utf-8") as file:
            file.write(f"\nagent: not resolved: no answer within {answer.seconds:.0f} s\n")
        return _record(request, command, log, Exit(cause="lost"), started)
    end = Exit(code=answer.code, signal=answer.signal)
    record = _record(request, command, log, end, started)
    if answer.end == "refused":
        return record
    return record.model_copy(update={"passed": True, "shown": _shown(answer, request, asked)})


def close_resolvers() -> None:
    """End every warm process of this one, also those that are asked something in this moment."""
    for resolver in list(_resolvers.values()):
        resolver.kill()
    with _lock:
        for resolver in _resolvers.values():
            resolver.close()
        _resolvers.clear()


def _resolver(engine: str, request: TrialRequest) -> WarmResolver:
    settings = request.settings
    key = json.dumps([engine, settings.python, settings.device, dict(settings.variables)], sort_keys=True)
    if key not in _resolvers:
        _resolvers[key] = WarmResolver(engine, settings.python or sys.executable, _environment(request, settings))
    return _resolvers[key]


def _environment(request: TrialRequest, settings: EngineSettings) -> dict[str, str]:
    hidden = NO_GPU if settings.device != "cuda" else {}
    return {**request.environment, **settings.variables, **hidden}


def _shown(answer: Answer, request: TrialRequest, asked: Mapping[str, str]) -> Shown:
    """Return what the engine shows in the words of the request.

    Variables are no arguments: launches that differ in them are two, however their arguments resolve.
    """
    values = {name: _scalar(answer.values[word]) for name, word in asked.items() if word in answer.values}
    text = json.dumps([answer.fingerprint, sorted(request.variables.items())])
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:24]
    return Shown(options={name: value for name, value in values.items() if value is not None}, fingerprint=fingerprint)


def _scalar(value: object) -> Scalar | None:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, bool | int | float | str) else None


def _record(request: TrialRequest, command: Command, log: Path, end: Exit, started: float) -> RunRecord:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    numbered = list(enumerate(lines, start=1))[-EXCERPT_LINES:]
    wall_s = time.monotonic() - started
    return RunRecord(
        exit=end,
        phase=Phase.RESOLVE,
        phase_s={Phase.RESOLVE: wall_s},
        wall_s=wall_s,
        argv=command.argv,
        env=command.env,
        log_path=str(log),
        log_lines=len(lines),
        excerpt=tuple(LogLine(number=number, text=text) for number, text in numbered),
        node=socket.gethostname(),
    )
