"""Is the node still the one that the study was begun on? Facts, then and now, and which differences matter.

What matters is what a reason may depend on, and what a measurement is made of: GPUs, links, driver, CUDA, packages,
engine, the files of the model. A changed kernel or host name is noted, since nothing on the map hangs on it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from agent.errors import NodeUnusableError, UsageError
from agent.reasons import REASONS
from agent.server import SERVERS
from agent.store.manifest import Manifest
from runners.engine_dialects import ask_engine, ask_python, model_facts
from runners.model_files import files_digest
from search_spaces import load_replayed

MEASURED_ON = frozenset({"driver", "cuda_driver", "gpu_names", "gpu_count", "device"})
"""Facts that no reason depends on and every measurement does."""
FILES = {"model_files": "model", "draft_files": "draft_model", "node_file": "node_model"}
"""Fact that fingerprints files → the setting that says where they are."""
OF_A_CPU = frozenset({"cpu_model", "num_cpus"})
"""The same where the ranks run on the CPU."""
HARMLESS = frozenset({"compiler.gcc", "memory_bytes"})
"""Although some reason depends on them: a compiler's patch release, a few MiB more or less of a virtual machine."""
RELEVANT = (MEASURED_ON | set(FILES) | {name for row in REASONS.values() for name in row.facts}) - HARMLESS

FACTS_TIMEOUT_S = 120
Collect = Callable[[tuple[str, ...]], Mapping[str, object]]
"""Folders that hold the engine's packages → the facts of this node."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs, one sentence each."""

    relevant: tuple[str, ...]
    noted: tuple[str, ...]


def collected_facts(paths: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the facts of this node, its software as those folders hold it (by default, as this Python does)."""
    command = [sys.executable, "-m", "runners.node_facts", *paths]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FACTS_TIMEOUT_S, check=True)
        facts: dict[str, object] = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        raise NodeUnusableError(f"the node's facts cannot be read: {error.stderr.strip()[-500:]}") from error
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise NodeUnusableError(f"the node's facts cannot be read: {error}") from error
    return facts


def file_facts(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the fingerprints of the files that an engine's settings name, as far as they are on this machine."""
    digests = {fact: files_digest(_text(settings.get(place))) for fact, place in FILES.items()}
    return {fact: digest for fact, digest in digests.items() if digest is not None}


def facts_now(manifest: Manifest, environment: Mapping[str, str], collect: Collect) -> dict[str, object]:
    """Return the facts of the node as a study would be begun with them now.

    Raises:
        EngineNotUsableError: the engine is gone from its environment.
        SpecificationError: the node model of a modelled study cannot be read any more.
    """
    settings = manifest.settings.engine
    files = file_facts(settings.model_dump())
    if settings.node_model is not None:
        return {**load_replayed(settings.node_model).facts, **files}
    server: dict[str, object] = {}
    paths: tuple[str, ...] = ()
    if settings.engine in SERVERS and settings.python is not None:
        everything = {**environment, **settings.variables}
        server = {
            "engine_version": f"{settings.engine} {ask_engine(settings.engine, settings.python, everything).version}"
        }
        named = {"model": settings.model, "draft_model": settings.draft_model}
        server |= {name: value for name, value in named.items() if value is not None}
        server |= model_facts(settings.model, settings.draft_model)
        paths = ask_python(settings.python, everything).paths
    facts = collect(paths)
    ours = {"device": settings.device, "num_ranks": settings.num_ranks}
    version = {"engine_version": f"{settings.engine} (torch {facts.get('torch')})"}
    return {**facts, **ours, **version, **server, **files}


def compare(before: Mapping[str, object], now: Mapping[str, object]) -> Changes:
    """Return what differs. A fact that was not known before says nothing."""
    relevant: list[str] = []
    noted: list[str] = []
    old, new = dict(_flat(before)), dict(_flat(now))
    of_a_cpu = before.get("device") == "cpu"
    names = [*old, *(name for name in new if name not in old and name.partition(".")[0] in before)]
    for name in names:
        then, today = old.get(name), new.get(name)
        if _plain(then) == _plain(today):
            continue
        words = f"{name}: {_shown(then)} → {_shown(today)}"
        whole = name.partition(".")[0]
        matters = name not in HARMLESS and (whole in RELEVANT or (of_a_cpu and whole in OF_A_CPU))
        (relevant if matters else noted).append(words)
    return Changes(tuple(relevant), tuple(noted))


def refusal(study: str, changes: Changes, again: str) -> UsageError:
    """Return the error that stops a resume: what differs, and the two ways on; `again` is the line that resumes."""
    return UsageError(
        f"the environment of study {study} changed:",
        *(f"  {each}" for each in changes.relevant),
        "What was measured before cannot be compared with what is measured now. Go on with",
        f"  {again} --accept-environment",
        "which keeps the earlier launches apart, measures default and baseline again, and checks again what is dead",
        "and hangs on a changed fact; or begin a new study, which inherits the map, with `agent search` as before",
    )


def _flat(facts: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{part}", each) for part, each in value.items())
        else:
            yield name, value


def _plain(value: object) -> object:
    """What was stored as JSON has lists in the place of tuples."""
    return list(value) if isinstance(value, tuple) else value


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
