"""Questions about GPUs while an engine is imported: answered from what a child saw, and by CUDA once that is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runners.torch_engine.gpu_answers import answered_without_cuda, ask_in_a_child

REPOSITORY = Path(__file__).parents[3]
DEVICES = [
    {"name": "first", "major": 9, "minor": 0, "total_memory": 1 << 30},
    {"name": "second", "major": 12, "minor": 1, "total_memory": 1 << 31},
]


def test_torch_answers_from_what_is_known_and_itself_again_afterwards() -> None:
    before = torch.cuda.get_device_capability
    with answered_without_cuda(DEVICES):
        assert (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device()) == (True, 2, 0)
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_capability("cuda:1") == (12, 1)
        assert torch.cuda.get_device_properties(torch.device("cuda", 1)).total_memory == 1 << 31
        assert torch.cuda.get_device_name(1) == "second"
    assert torch.cuda.get_device_capability is before


def test_a_function_that_an_engine_kept_asks_cuda_once_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank's current device is its own, not the one that was answered during the import."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    with answered_without_cuda(DEVICES):
        kept = torch.cuda.current_device
        assert kept() == 0
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert kept() == 1


@pytest.mark.skipif("torch.cuda.is_available()", reason="there are GPUs")
def test_without_gpus_nothing_is_answered_in_torch_s_place() -> None:
    assert ask_in_a_child() == []
    before = torch.cuda.is_available
    with answered_without_cuda([]):
        assert torch.cuda.is_available is before


@pytest.mark.gpu
@pytest.mark.skipif("not torch.cuda.is_available()", reason="needs a GPU")
def test_a_child_sees_the_gpus_and_its_parent_stays_clean() -> None:
    code = """
from runners.torch_engine.gpu_answers import answered_without_cuda, ask_in_a_child
from runners.torch_engine.package_collectives import is_cuda_initialised
devices = ask_in_a_child()
assert devices and devices[0]["major"] > 0, devices
with answered_without_cuda(devices):
    import torch
    assert torch.cuda.get_device_capability()[0] == devices[0]["major"]
assert not is_cuda_initialised()
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, timeout=120)
