"""What a node is: processors, memory, GPUs and how they are linked, driver and library versions.

Meant for a fresh process (`python -m runners.node_facts`), so that what the drivers' libraries leave behind does not
meet a trial. With folders as arguments, the software is that of the Python which imports from them: an engine's own
environment, in which nothing of ours runs.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from runners.gpu_facts import JSON, gpu_facts
from runners.numa_facts import numa_cpus

PACKAGES = (
    "torch",
    "triton",
    "numpy",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "flashinfer-python",
    "sgl-kernel",
    "sglang",
    "vllm",
)
UNREADABLE = (OSError, ValueError, LookupError, ImportError, AttributeError, RuntimeError, subprocess.SubprocessError)
"""How reading a fact fails where there is nothing to read, or a library is missing, broken, or of another version."""
DEFAULT_CPU_PERIOD_US = 100_000
"""The kernel's default; version 1 of the cgroups keeps it in a file of its own, which nobody changes."""
GIB = 1 << 30


def collect(paths: Sequence[str] = ()) -> dict[str, JSON]:
    """Return every fact by its flat name; one that cannot be read is None.

    Args:
        paths: Folders that hold the engine's packages; by default those that this Python imports from.
    """
    software = {"compiler": _compilers(), "packages": _packages(paths)}
    return _host_facts() | gpu_facts() | _torch_facts(paths) | software


def summary_lines(facts: Mapping[str, object]) -> list[str]:
    """Return a few lines for a reader: the host, the GPUs, the software. A modelled node may lack facts."""
    lines = [_host_summary(facts)] if "num_cpus" in facts else []
    facts = defaultdict(lambda: None, facts)
    lines.append(_gpu_summary(facts))
    named = {"driver": "driver", "cuda_driver": "CUDA driver", "torch": "torch", "cuda": "CUDA", "nccl": "NCCL"}
    versions = [f"{label} {facts[name]}" for name, label in {**named, "python": "Python"}.items() if facts[name]]
    return [*lines, ", ".join(versions)]


def _host_summary(facts: Mapping[str, object]) -> str:
    host = f"{facts['num_cpus']} CPUs ({facts['cpu_model']}), {_gib(facts['memory_bytes'])} memory"
    if facts["memory_limit"] is not None:
        host += f" (limit {_gib(facts['memory_limit'])})"
    return f"{facts['hostname']}: {host}, {_gib(facts['shm_bytes'])} /dev/shm, {facts['os']}, Linux {facts['kernel']}"


def _gpu_summary(facts: Mapping[str, object]) -> str:
    names, links = facts["gpu_names"], facts["links"]
    if not facts["gpu_count"] or not isinstance(names, list):
        return "no GPU"
    text = f"{facts['gpu_count']}x {' / '.join(sorted({str(name) for name in names}))}, {facts['gpu_arch']}"
    text += f", {_gib(facts['gpu_memory_bytes'])} each"
    if isinstance(links, list) and len(links) > 1:
        kinds = sorted({kind for row in links for kind in str(row).split() if kind != "X"})
        text += f", links {'/'.join(kinds)}, P2P {facts['p2p'] or 'unknown'}"
    return text


def _gib(value: object) -> str:
    return f"{value / GIB:.1f} GiB" if isinstance(value, int) else "unknown"


def _fact(read: Callable[[], JSON]) -> JSON:
    """Return what `read` returns, or None where there is nothing to read: no fact is worth a failure."""
    try:
        return read()
    except UNREADABLE:
        return None


def _host_facts() -> dict[str, JSON]:
    return {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "os": _fact(lambda: platform.freedesktop_os_release()["PRETTY_NAME"]),
        "cpu_model": _fact(lambda: _cpuinfo(r"^model name\s*:\s*(.+)$")),
        "num_cpus": _fact(_num_cpus),
        "numa_cpus": _fact(lambda: {**numa_cpus()}),
        "memory_bytes": _fact(lambda: os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
        "memory_limit": _fact(_memory_limit),
        "shm_bytes": _fact(lambda: os.statvfs("/dev/shm").f_frsize * os.statvfs("/dev/shm").f_blocks),  # noqa: S108
        "python": platform.python_version(),
        "virtualization": _fact(_virtualization),
    }


def _cpuinfo(pattern: str) -> str | None:
    found = re.search(pattern, Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].strip() if found else None


def _num_cpus() -> int:
    """Return the processors that this process may use: by its affinity and by the quota of its cgroup."""
    allowed = len(os.sched_getaffinity(0))
    quota, *period = (_cgroup("cpu.max", "cpu/cpu.cfs_quota_us") or "max").split()
    if not quota.isdigit():  # "max", or -1 in version 1
        return allowed
    return max(1, min(allowed, round(int(quota) / int(period[0] if period else DEFAULT_CPU_PERIOD_US))))


def _memory_limit() -> int | None:
    """Return the limit of the cgroup in bytes, or None when there is none (version 1 then names a huge number)."""
    limit = _cgroup("memory.max", "memory/memory.limit_in_bytes")
    return int(limit) if limit and limit.isdigit() and int(limit) < 1 << 60 else None


def _cgroup(name: str, name_in_version_1: str) -> str | None:
    """Return a setting of this process's own cgroup, or of the root that a container sees."""
    root = Path("/sys/fs/cgroup")
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
    controller, _, file = name_in_version_1.partition("/")
    places = [root / path.lstrip("/") / name for _, controllers, path in own if not controllers]
    places += [root / controller / path.lstrip("/") / file for _, names, path in own if controller in names.split(",")]
    places += [root / name, root / name_in_version_1]
    return next((place.read_text(encoding="utf-8").strip() for place in places if place.is_file()), None)


def _virtualization() -> str | None:
    """Return the product name of a virtual machine, or None on bare metal."""
    flags = _cpuinfo(r"^flags\s*:\s*(.+)$")
    if flags is None or "hypervisor" not in flags.split():
        return None
    product = Path("/sys/class/dmi/id/product_name")
    return (product.read_text(encoding="utf-8").strip() if product.is_file() else "") or "virtual machine"


def _torch_facts(paths: Sequence[str]) -> dict[str, JSON]:
    """Return what torch was built with, from its version file: importing it would take longer than all the rest."""
    built = _fact(lambda: _torch_version_file(paths))
    if not isinstance(built, dict):
        return dict.fromkeys(("torch", "cuda", "nccl"))
    nccl = None if built.get("cuda") is None else _packaged_nccl(paths) or _fact(lambda: _compiled_nccl(paths))
    return {"torch": built.get("__version__"), "cuda": built.get("cuda"), "nccl": nccl}


def _torch_version_file(paths: Sequence[str]) -> JSON:
    spec = PathFinder.find_spec("torch", paths) if paths else importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    tree = ast.parse(Path(spec.origin).with_name("version.py").read_text(encoding="utf-8"))
    assignments = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    return {_target(node): value for node in assignments if isinstance(value := _constant(node), str)}


def _constant(node: ast.Assign | ast.AnnAssign) -> object:
    return node.value.value if isinstance(node.value, ast.Constant) else None


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""


def _packaged_nccl(paths: Sequence[str]) -> JSON:
    """Return the version of the NCCL that torch's wheels bring as a package."""
    names = [name for name in PACKAGES if name.startswith("nvidia-nccl")]
    versions = (_fact(partial(_package_version, name, paths)) for name in names)
    return next((version for version in versions if version is not None), None)


def _compiled_nccl(paths: Sequence[str]) -> JSON:
    """Return the version of an NCCL that was built into our own torch; another environment's is not imported here."""
    if paths:
        return None
    import torch

    nccl_version: Callable[[], tuple[int, ...]] = torch.cuda.nccl.version
    return ".".join(str(part) for part in nccl_version())


def _compilers() -> JSON:
    """Return the versions of the compilers that a just-in-time build would use."""
    return {
        "gcc": _fact(lambda: _version_of("gcc", r"(\d+\.\d+\.\d+)\s*$")),
        "nvcc": _fact(lambda: _version_of("nvcc", r"release [\d.]+, V([\d.]+)")),
    }


def _version_of(program: str, pattern: str) -> str | None:
    path = shutil.which(program) or shutil.which(program, path="/usr/local/cuda/bin")
    if path is None:
        return None
    output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=2.0, check=True).stdout
    found = re.search(pattern, output, re.MULTILINE)
    return found[1] if found else None


def _packages(paths: Sequence[str]) -> JSON:
    """Return the versions of the installed packages that decide what an engine can do."""
    versions = {name: _fact(partial(_package_version, name, paths)) for name in PACKAGES}
    return {name: version for name, version in versions.items() if version is not None}


def _package_version(name: str, paths: Sequence[str]) -> str:
    found = next(iter(metadata.distributions(name=name, path=[*paths] or sys.path)), None)
    if found is None:
        raise metadata.PackageNotFoundError(name)
    return found.version


if __name__ == "__main__":
    json.dump(collect(sys.argv[1:]), sys.stdout, indent=1, sort_keys=True)
    print()
