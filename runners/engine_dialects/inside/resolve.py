"""Runs in the user's Python, where the engine is: resolves the arguments of launches, each in a forked child.

    python resolve.py vllm < orders > answers

An order is a line of JSON: `id`, `argv` (without the program), `env` (set on top), `log` (file for what the engine
prints), `timeout_s`, and `options` (long options without dashes whose values are wanted). The answer is a line that
begins with MARK: `id`, `end` (resolved, refused, or no_answer), `code` and `signal` of the child, `seconds`, `values`,
`fingerprint`. The first line, without an id, says that the engine is imported.

Resolution leaves state behind in caches and in the environment, so the parent only imports, also what its children
turned out to need, and never resolves. No GPU work: engines only look at which GPU there is.

Standard library only, and any Python that the engines run on (3.9 and newer).
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

MARK = "AGENT-ENGINE "
VLLM_PARSERS = ("entrypoints.common.cli_args", "entrypoints.launchers.cli_args", "entrypoints.openai.cli_args")
"""Where make_arg_parser lives in vLLM 0.33, in 0.29 to 0.32, and before."""
VLLM_PARSER_CLASSES = ("utils.argparse_utils", "utils")
"""Where FlexibleArgumentParser lives in vLLM 0.12 to 0.33, and before."""
VOLATILE = {"port", "ports", "instance", "host"}
"""Words in names whose values differ from launch to launch without a meaning."""
MOST_DEPTH = 8

Resolve = Callable[["list[str]"], "dict[str, Any]"]
"""Arguments → the resolved configuration as nested dictionaries of plain values."""


def prepare(engine: str) -> Resolve:
    """Import the engine and return what resolves the arguments of one launch."""
    return _sglang() if engine == "sglang" else _vllm()


def _vllm() -> Resolve:
    parser = _first(VLLM_PARSERS, "make_arg_parser")(_first(VLLM_PARSER_CLASSES, "FlexibleArgumentParser")())
    engine_args = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs
    usage = importlib.import_module("vllm.usage.usage_lib").UsageContext.OPENAI_API_SERVER

    def resolve(argv: list[str]) -> dict[str, Any]:
        args = parser.parse_args(argv)
        engine = engine_args.from_cli_args(args)
        config = dict(plain(engine.create_engine_config(usage_context=usage), MOST_DEPTH))
        of_the_server = {name: value for name, value in vars(args).items() if not hasattr(engine, name)}
        return {**config, "server": plain(of_the_server, MOST_DEPTH)}

    return resolve


def _sglang() -> Resolve:
    module = importlib.import_module("sglang.srt.server_args")

    def resolve(argv: list[str]) -> dict[str, Any]:
        args = module.prepare_server_args(argv)
        if hasattr(args, "resolve_once"):  # 0.5.20 and newer; before, the arguments resolve themselves when made
            args.resolve_once()
        found = args.resolved_dict() if hasattr(args, "resolved_dict") else vars(args)
        return dict(plain(dict(found), MOST_DEPTH))

    return resolve


def _first(modules: tuple[str, ...], name: str) -> Any:
    """Return that name from the first module of vLLM that exists and has it."""
    for module in modules:
        try:
            return getattr(importlib.import_module("vllm." + module), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise SystemExit(f"vLLM has none of {', '.join(modules)} with {name}: this version is not known")


def plain(value: Any, depth: int) -> Any:
    """Return a configuration as dictionaries, lists and scalars; what is neither is named by its type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth == 0:
        return type(value).__name__
    if isinstance(value, dict):
        return {str(key): plain(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner, depth - 1) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(inner) for inner in value)
    if hasattr(value, "name") and hasattr(type(value), "__members__"):
        return value.name
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name, None), depth - 1) for name in names}
    text = str(value)
    return text if len(text) < 40 and " at 0x" not in text else type(value).__name__


def shown(config: dict[str, Any], options: list[str]) -> dict[str, Any]:
    """Return option → its value in the configuration, for options whose name stands there once, or always the same."""
    named: dict[str, list[Any]] = {}
    for section, inner in config.items():
        named.setdefault(section, []).append(inner)
        for name, value in inner.items() if isinstance(inner, dict) else ():
            named.setdefault(name, []).append(value)
            named.setdefault(f"{section}.{name}", []).append(value)
    found = {}
    for option in options:
        values = [value for value in named.get(option.replace("-", "_"), []) if value is not None]
        if values and all(value == values[0] for value in values) and not isinstance(values[0], dict):
            found[option] = values[0]
    return found


def fingerprint(config: dict[str, Any]) -> str:
    """Return a key of everything in a configuration that is not about one launch alone."""
    text = json.dumps(_lasting(config), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if not VOLATILE & set(name.split("_"))}
        return {name: _lasting(inner) for name, inner in kept.items()}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def child(resolve: Resolve, order: dict[str, Any], writer: int) -> None:
    """Resolve one order and end; never returns."""
    code = 1
    gc.disable()  # a collection would copy every page that it looks at, for a process that ends at once
    try:
        os.setpgid(0, 0)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(order["env"])
        before = set(sys.modules)
        config = resolve(order["argv"])
        answer = {"values": shown(config, order["options"]), "fingerprint": fingerprint(config)}
        answer["modules"] = sorted(name for name in set(sys.modules) - before if "__main__" not in name)
        with os.fdopen(writer, "w") as pipe:
            json.dump(answer, pipe)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - whatever the engine raises is its answer, and stands in the log
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)


def answered(resolve: Resolve, order: dict[str, Any]) -> dict[str, Any]:
    """Fork a child for one order and return its answer; a child that says nothing in time is killed."""
    started = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(resolve, order, writer)
    os.close(writer)
    text, in_time = _read_until(reader, started + order["timeout_s"])
    os.close(reader)
    if not in_time:
        _kill(pid)
    status = os.waitpid(pid, 0)[1]
    _kill_group(pid)
    said = json.loads(text) if text and os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else None
    return {
        "id": order["id"],
        "end": "resolved" if said is not None else "refused" if in_time else "no_answer",
        "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "seconds": time.monotonic() - started,
        **(said or {}),
    }


def _read_until(reader: int, deadline: float) -> tuple[bytes, bool]:
    """Return what was written until the pipe's end, and whether that came before the deadline."""
    parts: list[bytes] = []
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reader], [], [], left)[0]:
            break
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts), True
        parts.append(part)
    return b"".join(parts), False


def _kill(pid: int) -> None:
    _kill_group(pid)
    os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    """End what the child started; a child that came to nothing has no group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def preload(modules: list[str]) -> None:
    """Import what a child needed, so that the next ones need not; what cannot be imported alone is left to them."""
    for name in modules:
        with suppress(Exception):
            importlib.import_module(name)
    gc.freeze()


def main(engine: str) -> None:
    """Answer orders until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the engine prints is no answer
    resolve = prepare(engine)
    print(MARK + json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        answer = answered(resolve, json.loads(line))
        modules = answer.pop("modules", [])
        print(MARK + json.dumps(answer), file=answers)
        preload(modules)


if __name__ == "__main__":
    main(sys.argv[1])
