"""Where engines keep what they compile: shared by all launches of one engine version on one architecture.

A launch has a temporary folder of its own, which is removed; kernels compiled in there would be compiled again by
every launch, for minutes each. And a folder shared by two versions or two architectures serves the wrong kernels.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from runners.processes import all_pids
from runners.slot import Slot

FOLDERS: Mapping[str, str] = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "torch_extensions",
    "VLLM_CACHE_ROOT": "vllm",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "SGLANG_CACHE_DIR": "sglang",
    "SGLANG_JIT_CACHE_DIR": "sglang_jit",
    "SGLANG_DG_CACHE_DIR": "deep_gemm",
    "DG_JIT_CACHE_DIR": "deep_gemm",
    "TVM_FFI_CACHE_DIR": "tvm_ffi",
    "TILELANG_CACHE_DIR": "tilelang",
    "CUTE_DSL_CACHE_DIR": "cute_dsl",
}
"""Variable → folder. Source: torch 2.13 (inductor, cpp_extension), triton 3.6, vLLM 0.32 envs.py, FlashInfer 0.6
jit/env.py, SGLang 0.5.16 to 0.5.23 environ.py, DeepGEMM 2, tvm-ffi 0.1, TileLang, CuTe DSL 4."""
BATON = "lock"
"""Name of the file by which torch's file_baton.py lets one process compile and all others wait while it exists, for
ever if the first one was killed. The lock files of the other compilers end with their owner (flock)."""


def cache_root(
    user_environment: Mapping[str, str], engine: str, version: str, arch: str, slot: Slot | None = None
) -> Path:
    """Return the folder for one engine version on one architecture, below the user's cache folder.

    Trials at the same time have a folder each, by where their slot begins: one would wait for what the other compiles,
    while its measurement runs. The first slot has the folder of a trial that is alone.
    """
    base = user_environment.get("XDG_CACHE_HOME") or f"{user_environment.get('HOME', str(Path.home()))}/.cache"
    name = "-".join(_plain(part) for part in (engine, version, arch))
    beside = f"-slot{slot.number}" if slot is not None and slot.is_shared and slot.number else ""
    return Path(base) / "serving-search-agent" / "compiled" / f"{name}{beside}"


def cache_variables(user_environment: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the variables that lead the compilers to `root`, without those that the user has set."""
    folders = {name: str(root / folder) for name, folder in FOLDERS.items()}
    return {name: folder for name, folder in folders.items() if name not in user_environment}


def remove_stale_batons(root: Path) -> tuple[Path, ...]:
    """Remove the batons below `root` that nobody holds any more, and return them. The holder keeps its file open."""
    batons = [path for path in root.glob(f"{FOLDERS['TORCH_EXTENSIONS_DIR']}/**/{BATON}") if path.is_file()]
    if not batons:
        return ()
    held = _open_files()
    stale = tuple(path for path in batons if str(path.resolve()) not in held)
    for path in stale:
        path.unlink(missing_ok=True)
    return stale


def architecture(device: str) -> str:
    """Return what compiled code depends on: `sm90` for a GPU, else the processor's kind."""
    if device == "cuda" and (capability := _compute_capability()):
        return f"sm{capability}"
    return platform.machine()


def _compute_capability() -> str | None:
    import pynvml

    try:
        pynvml.nvmlInit()
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))
    except pynvml.NVMLError:
        return None
    return f"{major}{minor}"


def _open_files() -> set[str]:
    found: set[str] = set()
    for pid in all_pids():
        try:
            found.update(os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd"))  # noqa: PTH115
        except OSError:
            continue  # gone, or not ours to look at
    return found


def _plain(text: str) -> str:
    return re.sub(r"[^\w.+]", "_", text)
