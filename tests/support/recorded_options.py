"""The recorded option lists of SGLang and vLLM, as if the installed engine had been asked."""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

from runners.engine_dialects import AcceptedOption, EngineOptions

FOLDER = Path(__file__).parents[1] / "runners" / "recorded_options"


def recorded_versions(engine: str) -> list[str]:
    """Return the recorded versions of an engine, oldest first."""
    first = (FOLDER / f"{engine}.txt").read_text(encoding="utf-8").splitlines()[0]
    return first.split()[1:]


@cache
def recorded(engine: str, version: str) -> EngineOptions:
    """Return what a recorded version accepts."""
    versions = recorded_versions(engine)
    options, variables = {}, set()
    for line in (FOLDER / f"{engine}.txt").read_text(encoding="utf-8").splitlines()[1:]:
        span, name, *rest = line.split()
        first, last = (versions.index(end) for end in span.split(".."))
        if not first <= versions.index(version) <= last:
            continue
        if name.startswith("--"):
            choices = rest[1].split(",") if len(rest) > 1 else []
            options[name[2:]] = AcceptedOption.model_validate({"kind": rest[0], "choices": choices})
        else:
            variables.add(name)
    return EngineOptions(engine=engine, version=version, options=options, variables=frozenset(variables))


def parser_of(accepted: EngineOptions) -> argparse.ArgumentParser:
    """Return a parser that accepts and refuses what that version does, ambiguous prefixes included."""
    parser = argparse.ArgumentParser(exit_on_error=True)
    for name, option in accepted.options.items():
        if name == "help":
            continue
        if option.kind == "flag":
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(
                f"--{name}", choices=option.choices or None, nargs="+" if option.kind == "list" else None
            )
    return parser
