"""What a node lacks for a search, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError
from agent.home import Home

GIB = 1 << 30
HOME_GIB = 5
"""Logs, stacks and results of a study of 40 launches take a few hundred MiB; a full disk ends it."""
SHARED_GIB = 1
"""Ranks and NCCL pass data through /dev/shm; containers have 64 MiB unless told otherwise."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the kernel's folder, not one of ours


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """One thing that a search needs or profits from."""

    name: str
    is_there: bool
    found: str
    cure: str = ""
    is_needed: bool = False
    """Whether no search works without it."""


def node_checks(facts: Mapping[str, object], home: Home, tools: Sequence[Path] = ()) -> list[NodeCheck]:
    """Return what is there and what is missing.

    Args:
        facts: The node's, as a study would have them.
        home: Where the state would lie.
        tools: Folders of engines' programs, where py-spy may lie as well.
    """
    return [
        _package("ray", "pip install 'ray[default]'", is_needed=True),
        _package("mlflow", "pip install mlflow; without it nothing is mirrored, and the search works all the same"),
        _py_spy(tools),
        _home(home),
        _space(str(SHARED_MEMORY), SHARED_MEMORY, SHARED_GIB, "docker run --shm-size=16g, or --ipc=host"),
        *(_gpu_software(facts) if facts.get("gpu_count") else ()),
    ]


def _package(name: str, cure: str, *, is_needed: bool = False) -> NodeCheck:
    """A folder of that name is no package: it has no file of its own to be imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return NodeCheck(name, False, "not installed", cure, is_needed)
    try:
        version: str | None = importlib.metadata.version(name)  # None where a damaged installation has no such line
    except importlib.metadata.PackageNotFoundError:  # copied, not installed: it works all the same
        version = None
    return NodeCheck(name, True, version or "version unknown", is_needed=is_needed)


def _py_spy(tools: Sequence[Path]) -> NodeCheck:
    found = next((path for tool in (None, *map(str, tools)) if (path := shutil.which("py-spy", path=tool))), None)
    cure = "pip install py-spy; without it, the stacks of a hang are those that Python writes when it is aborted"
    return NodeCheck("py-spy", found is not None, found or "not installed", "" if found else cure)


def _home(home: Home) -> NodeCheck:
    try:
        home.check()
    except UsageError as error:
        return NodeCheck("home", False, str(error), "choose another folder with --home", is_needed=True)
    nearest = next(path for path in (home.path, *home.path.parents) if path.exists())
    return _space("home", nearest, HOME_GIB, "free some, or choose another folder with --home")


def _space(name: str, path: Path, least_gib: int, cure: str) -> NodeCheck:
    if not path.exists():
        return NodeCheck(name, False, f"there is no {path}", cure)
    free = shutil.disk_usage(path).free / GIB
    is_enough = free >= least_gib
    return NodeCheck(name, is_enough, f"{free:.1f} GiB free in {path}", "" if is_enough else cure)


def _gpu_software(facts: Mapping[str, object]) -> Iterator[NodeCheck]:
    nccl, compilers = facts.get("nccl"), facts.get("compiler")
    cure = "install a torch that is built with CUDA: pip install --force-reinstall torch"
    yield NodeCheck("NCCL", nccl is not None, str(nccl or "not found"), "" if nccl else cure)
    nvcc = compilers.get("nvcc") if isinstance(compilers, Mapping) else None
    cure = (
        f"install the CUDA toolkit of CUDA {facts.get('cuda')} and put nvcc on PATH: kernels are compiled on first use"
    )
    yield NodeCheck("nvcc", nvcc is not None, str(nvcc or "not found"), "" if nvcc else cure)
