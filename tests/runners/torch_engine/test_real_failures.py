"""What cannot work on this machine fails for real, with torch's own words, in the phase where it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

needs_no_cuda = pytest.mark.skipif(torch.version.cuda is not None, reason="these are the words of a CPU-only torch")


@needs_no_cuda
@pytest.mark.parametrize(
    ("flags", "phase", "words"),
    [
        (["--allreduce", "nccl"], "init_distributed", "RuntimeError: Distributed package doesn't have NCCL built in"),
        (["--allreduce", "symm_mem_one_shot"], "init_distributed", "RuntimeError: SymmetricMemory does not support"),
        (["--allreduce", "symm_mem_two_shot"], "init_distributed", "RuntimeError: SymmetricMemory does not support"),
        (
            ["--cuda-graph-max-bs", "4"],
            "capture_graphs",
            "RuntimeError: Tried to instantiate dummy base class CUDAGraph",
        ),
    ],
)
def test_what_a_cpu_lacks_ends_the_launch_with_torchs_own_error(
    engine: Callable[..., Any], flags: list[str], phase: str, words: str
) -> None:
    """No check of ours stands in front, and nothing falls back."""
    launch = engine("--device", "cpu", *flags)
    assert launch.exit_code == 1
    assert launch.result is None
    assert f"phase={phase}" in launch.stdout.splitlines()[-1]
    assert words in launch.stderr
    assert "[rank0] Traceback" in launch.stderr or "[rank1] Traceback" in launch.stderr


@needs_no_cuda
def test_device_cuda_without_a_gpu_is_torchs_error_too(engine: Callable[..., Any]) -> None:
    """``--device cuda`` is tried, not judged."""
    launch = engine("--device", "cuda")
    assert launch.exit_code == 1
    assert "Torch not compiled with CUDA enabled" in launch.stderr
