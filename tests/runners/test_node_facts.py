"""Node facts: always complete, JSON, and readable without a GPU, a driver or a library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runners.gpu_facts import _Nvml
from runners.node_facts import collect, summary_lines
from tests.support.installed_engine import add_distribution, add_torch

NAMES = {
    *("hostname", "kernel", "os", "cpu_model", "num_cpus", "memory_bytes", "memory_limit", "shm_bytes", "python"),
    *("virtualization", "gpu_count", "gpu_names", "gpu_arch", "gpu_memory_bytes", "gpu_uuids", "driver", "cuda_driver"),
    *("numa_cpus", "gpu_numa", "links", "p2p", "torch", "cuda", "nccl", "compiler", "packages"),
}


class NvmlError(Exception):
    """What this NVML raises."""


class Switched:
    """NVML of a node whose GPUs hang on an NVSwitch; what it does not know raises, as in a virtual machine."""

    NVMLError = NvmlError
    NVML_NVLINK_MAX_LINKS = 18
    NVML_P2P_STATUS_OK = 0
    NVML_P2P_CAPS_INDEX_READ = 0
    NVML_P2P_CAPS_INDEX_NVLINK = 2

    def __init__(self, num_gpus: int, *, has_nvlink: bool = True, p2p: bool = True) -> None:
        self.num_gpus, self.has_nvlink, self.p2p = num_gpus, has_nvlink, p2p

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: object) -> None:
            raise NvmlError(name)

        return refuse

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - NVML's name, as those below
        return self.num_gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, gpu: int) -> bytes:  # noqa: N802
        return b"NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, gpu: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=(140 + gpu) << 30)

    def nvmlDeviceGetCudaComputeCapability(self, gpu: int) -> list[int]:  # noqa: N802
        return [9, 0]

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13010

    def nvmlDeviceGetNvLinkState(self, gpu: int, link: int) -> int:  # noqa: N802
        if not self.has_nvlink:
            raise NvmlError
        return 1

    def nvmlDeviceGetTopologyCommonAncestor(self, first: int, second: int) -> int:  # noqa: N802
        return 50

    def nvmlDeviceGetP2PStatus(self, first: int, second: int, capability: int) -> int:  # noqa: N802
        is_ok = self.has_nvlink if capability == self.NVML_P2P_CAPS_INDEX_NVLINK else self.p2p
        return 0 if is_ok else 4


class Bridged(Switched):
    """NVML of a node with two GPUs joined by four direct links, and a third one without."""

    def nvmlDeviceGetPciInfo(self, gpu: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(busId=f"00000000:{gpu:02X}:00.0")

    def nvmlDeviceGetNvLinkState(self, gpu: int, link: int) -> int:  # noqa: N802
        return int(gpu < 2 and link < 4)

    def nvmlDeviceGetNvLinkRemotePciInfo(self, gpu: int, link: int) -> SimpleNamespace:  # noqa: N802
        return self.nvmlDeviceGetPciInfo(1 - gpu)

    def nvmlDeviceGetP2PStatus(self, first: int, second: int, capability: int) -> int:  # noqa: N802
        return 0 if {first, second} == {0, 1} else 4


def facts_of(nvml: object) -> dict[str, Any]:
    return dict(_Nvml(nvml).facts())  # type: ignore[arg-type]


def test_every_fact_is_there_as_json() -> None:
    done = subprocess.run([sys.executable, "-m", "runners.node_facts"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    assert facts.keys() == NAMES
    assert facts["num_cpus"] >= 1
    assert facts["memory_bytes"] > 0
    assert facts["packages"]["torch"] == facts["torch"]
    assert len(summary_lines(facts)) == 3


def test_importing_it_does_not_import_torch() -> None:
    code = "import runners.node_facts, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_missing_library_is_a_null(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "pynvml"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("PATH", "")
    facts = collect()
    assert facts.keys() == NAMES
    assert (facts["torch"], facts["gpu_count"], facts["links"]) == (None, 0, None)
    assert "no GPU" in summary_lines(facts)


def test_gpus_behind_a_switch() -> None:
    facts = facts_of(Switched(2))
    assert facts["gpu_names"] == ["NVIDIA H200", "NVIDIA H200"]
    assert (facts["gpu_arch"], facts["gpu_memory_bytes"], facts["cuda_driver"]) == ("sm_90", 140 << 30, "13.1")
    assert (facts["links"], facts["p2p"]) == (["X NV18", "NV18 X"], "all")
    assert (facts["gpu_uuids"], facts["driver"]) == ([None, None], None)


def test_gpus_with_direct_links_to_some() -> None:
    facts = facts_of(Bridged(3))
    assert facts["links"] == ["X NV4 SYS", "NV4 X SYS", "SYS SYS X"]
    assert facts["p2p"] == "some"


def test_gpus_on_the_bus_alone() -> None:
    facts = facts_of(Switched(2, has_nvlink=False, p2p=False))
    assert (facts["links"], facts["p2p"]) == (["X SYS", "SYS X"], "none")


def test_a_single_gpu_has_nobody_to_reach() -> None:
    facts = facts_of(Switched(1))
    assert (facts["links"], facts["p2p"]) == (["X"], None)


def test_the_summary_names_gpus_links_and_versions() -> None:
    software = {"driver": "580.1", "torch": "2.11", "cuda": "13.0", "nccl": "2.28.9"}
    host, gpus, versions = summary_lines(dict.fromkeys(NAMES) | facts_of(Switched(2)) | software)
    assert "unknown memory" in host
    assert gpus == "2x NVIDIA H200, sm_90, 140.0 GiB each, links NV18, P2P all"
    assert versions.startswith("driver 580.1, CUDA driver 13.1, torch 2.11, CUDA 13.0, NCCL 2.28.9")


def test_another_environment_is_read_without_running_anything_in_it(tmp_path: Path) -> None:
    """Torch, CUDA and NCCL of an engine's own environment; what is not there is not ours instead."""
    add_torch(tmp_path, "9.9.0", "99.1")
    add_distribution(tmp_path, "nvidia-nccl-cu13", "2.99.1")
    facts = collect([str(tmp_path)])
    assert (facts["torch"], facts["cuda"], facts["nccl"]) == ("9.9.0", "99.1", "2.99.1")
    assert facts["packages"] == {"torch": "9.9.0", "nvidia-nccl-cu13": "2.99.1"}
    assert collect([str(tmp_path / "empty")])["torch"] is None
