"""Launches of the real engine for tests and benchmarks, and what kills its processes by their role."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent.classify.registry import decisive_patterns
from runners import Deadlines, EngineSettings, Rung, RunRecord, TrialRequest, Workload
from runners.cookies import find_with_descendants
from runners.processes import read_bytes
from runners.shared_memory import SHM_ROOT

SHORT = Workload(concurrency=(1, 4), prompt_tokens=32, output_tokens=32, requests=8)
ENDLESS = Workload(concurrency=(2,), prompt_tokens=32, output_tokens=1500, requests=100_000)
"""For servers that are killed while they serve."""
OPTIONS: Mapping[str, str | int | float | bool] = {
    "max-model-len": 2048,
    "gpu-memory-utilization": 0.3,
    "enforce-eager": True,
}
VARIABLES = {"VLLM_CPU_KVCACHE_SPACE": "1"}
TWO_RANKS = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
"""Two ranks cannot have a memory node each on a machine with one, which is what vLLM asks for by default."""
ROLES = {"leader": "vllm.entrypoints.openai.api_server", "engine core": "VLLM::EngineCore", "worker": "VLLM::Worker"}
LISTEN, LOOPBACK = "0A", "0100007F"
"""State and address in the kernel's tables of TCP sockets: 127.0.0.1, in the byte order of x86 and ARM."""
DEADLINES = Deadlines(phase_default_s=120.0, no_progress_s=30.0, stop_s=5.0)


def engine_request(
    python: str,
    model: Path,
    folder: Path,
    *,
    workload: Workload = SHORT,
    tp: int = 1,
    options: Mapping[str, str | int | float | bool] | None = None,
    deadlines: Deadlines = DEADLINES,
) -> TrialRequest:
    """Return the request for a launch of a tiny model."""
    settings = EngineSettings(
        engine="vllm",
        num_ranks=tp,
        device="cpu",
        options={**OPTIONS, **(options or {})},
        variables=VARIABLES | (TWO_RANKS if tp > 1 else {}),
        python=python,
        model=str(model),
    )
    return TrialRequest(
        study="engine",
        trial=0,
        rung=Rung.FULL,
        settings=settings,
        assignment={},
        workload=workload,
        deadlines=deadlines,
        decisive_patterns=decisive_patterns(),
        cookie=uuid.uuid4().hex,
        environment=dict(os.environ),
        artifact_dir=str(folder),
    )


def process_of(cookie: str, role: str) -> int | None:
    """Return the pid of the launch's process in this role (of the first worker), or None."""
    for key in sorted(find_with_descendants(cookie)):
        words = (read_bytes(f"/proc/{key.pid}/cmdline") or b"").decode(errors="replace").split("\0")
        if ROLES[role] in words[:3] or words[0].strip().startswith(ROLES[role]):
            return key.pid
    return None


def listening_addresses(cookie: str) -> set[str]:
    """Return the addresses on which the launch's processes listen, as the kernel's hexadecimal text."""
    sockets = {
        f"socket:[{fields[9]}]": fields[1].split(":")[0]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in (line.split() for line in Path(table).read_text(encoding="ascii").splitlines()[1:])
        if fields[3] == LISTEN
    }
    found = set()
    for key in find_with_descendants(cookie):
        for entry in os.scandir(f"/proc/{key.pid}/fd"):
            with suppress(FileNotFoundError):  # closed in this moment
                found.add(sockets.get(str(Path(entry.path).readlink())))
    return {address for address in found if address is not None}


def is_serving(request: TrialRequest) -> bool:
    """True once the launch has served its first completion."""
    path = Path(request.artifact_dir) / "phases.jsonl"
    return path.exists() and '"serve"' in path.read_text(encoding="utf-8")


def left_behind(cookie: str, record: RunRecord, shared_memory_before: set[str]) -> list[str]:
    """Return what there still is of a launch that is over, by looking for it, whatever the record says."""
    left = [f"process {key.pid}" for key in find_with_descendants(cookie)]
    temp_dir = record.env.get("TMPDIR")
    if temp_dir and Path(temp_dir).exists():
        left.append(f"folder {temp_dir}")
    new = shared_memory_names() - shared_memory_before
    left += [f"shared memory {name}" for name in sorted(new) if not is_mapped(name)]
    return left + ([] if record.leftovers.is_clean else [f"reported: {record.leftovers}"])


def shared_memory_names() -> set[str]:
    """Return the names of the segments in /dev/shm. A folder is none: `mlflow server` keeps its queue in one there."""
    return {entry.name for entry in os.scandir(SHM_ROOT) if not entry.is_dir(follow_symlinks=False)}


def is_mapped(name: str) -> bool:
    """True for a segment that some process uses: then it is another program's, which runs beside the test.

    By its inode: a semaphore is mapped before it has its name.
    """
    try:
        inode = str((SHM_ROOT / name).stat().st_ino).encode()
    except FileNotFoundError:
        return True  # gone by now, so somebody took care of it
    prefix = f"{SHM_ROOT}/".encode()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        lines = (read_bytes(str(maps)) or b"").splitlines()
        if any(prefix in line and line.split(maxsplit=5)[4] == inode for line in lines):
            return True
    return False
