"""What NVML says about the GPUs of a node and the ways between them. Needs no CUDA context and takes no GPU memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any, Union

from runners.numa_facts import numa_node_of

JSON = Union[None, bool, int, float, str, list["JSON"], dict[str, "JSON"]]  # noqa: UP007 - recursive

TOPOLOGY_NAMES = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""NVML's levels of the common ancestor of two GPUs, by the names that `nvidia-smi topo -m` gives them."""
NAMES = ("gpu_names", "gpu_arch", "gpu_memory_bytes", "gpu_uuids", "gpu_numa", "driver", "cuda_driver", "links", "p2p")


def gpu_facts() -> dict[str, JSON]:
    """Return the facts about GPUs and driver; without a driver, `gpu_count` 0 and None for the rest."""
    facts: dict[str, JSON] = {"gpu_count": 0} | dict.fromkeys(NAMES)
    try:
        import pynvml
    except ImportError:
        return facts
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return facts
    return facts | _Nvml(pynvml).facts()


class _Nvml:
    """The questions put to NVML, each answered by None where this driver or virtual machine does not answer."""

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml: Any = nvml
        count = self._ask(nvml.nvmlDeviceGetCount) or 0
        handles = [self._ask(nvml.nvmlDeviceGetHandleByIndex, index) for index in range(count)]
        self._gpus = [handle for handle in handles if handle is not None]

    def facts(self) -> dict[str, JSON]:
        nvml, gpus = self._nvml, self._gpus
        memory = [info.total for gpu in gpus if (info := self._ask(nvml.nvmlDeviceGetMemoryInfo, gpu)) is not None]
        cuda = self._ask(nvml.nvmlSystemGetCudaDriverVersion_v2)
        return {
            "gpu_count": len(gpus),
            "gpu_names": [_text(self._ask(nvml.nvmlDeviceGetName, gpu)) for gpu in gpus],
            "gpu_arch": self._arch(),
            "gpu_memory_bytes": min(memory, default=None),
            "gpu_uuids": [_text(self._ask(nvml.nvmlDeviceGetUUID, gpu)) for gpu in gpus],
            "gpu_numa": [numa_node_of(_bus_id(self._ask(nvml.nvmlDeviceGetPciInfo, gpu))) for gpu in gpus],
            "driver": _text(self._ask(nvml.nvmlSystemGetDriverVersion)),
            "cuda_driver": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            "links": self._links(),
            "p2p": self._p2p(),
        }

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (self._nvml.NVMLError, ctypes.ArgumentError):  # the latter: bindings of another version
            return None

    def _arch(self) -> str | None:
        """Return for example `sm_90`; several, joined by commas, on a node of mixed GPUs."""
        capabilities = [self._ask(self._nvml.nvmlDeviceGetCudaComputeCapability, gpu) for gpu in self._gpus]
        return ",".join(sorted({f"sm_{found[0]}{found[1]}" for found in capabilities if found is not None})) or None

    def _links(self) -> list[JSON]:
        """Return one row of text for each GPU, as in `X NV18 NV18 NV18`."""
        size = range(len(self._gpus))
        return [" ".join("X" if row == column else self._link(row, column) for column in size) for row in size]

    def _link(self, first: int, second: int) -> str:
        if num_links := self._num_nvlinks(first, second):
            return f"NV{num_links}"
        level = self._ask(self._nvml.nvmlDeviceGetTopologyCommonAncestor, self._gpus[first], self._gpus[second])
        return TOPOLOGY_NAMES.get(level, "?")

    def _num_nvlinks(self, first: int, second: int) -> int:
        """Return the NVLinks between two GPUs: those that end at the other one, or all of them behind a switch."""
        bus_id = _bus_id(self._ask(self._nvml.nvmlDeviceGetPciInfo, self._gpus[second]))
        ends = [_bus_id(self._remote(first, link)) for link in self._active_links(first)]
        if bus_id is not None and bus_id in ends:
            return ends.count(bus_id)
        if not self._can(first, second, self._nvml.NVML_P2P_CAPS_INDEX_NVLINK):
            return 0
        return min(len(ends), len(self._active_links(second)))

    def _active_links(self, index: int) -> list[int]:
        links = range(self._nvml.NVML_NVLINK_MAX_LINKS)
        return [link for link in links if self._ask(self._nvml.nvmlDeviceGetNvLinkState, self._gpus[index], link) == 1]

    def _remote(self, index: int, link: int) -> Any:
        return self._ask(self._nvml.nvmlDeviceGetNvLinkRemotePciInfo, self._gpus[index], link)

    def _p2p(self) -> str | None:
        """Return which pairs reach each other's memory directly: `all`, `some`, `none`; None for a single GPU."""
        size = range(len(self._gpus))
        pairs = [(first, second) for first in size for second in size if first != second]
        answers = [self._can(first, second, _plain(self._nvml.NVML_P2P_CAPS_INDEX_READ)) for first, second in pairs]
        if not answers or None in answers:
            return None
        return "all" if all(answers) else "some" if any(answers) else "none"

    def _can(self, first: int, second: int, capability: int) -> bool | None:
        status = self._ask(self._nvml.nvmlDeviceGetP2PStatus, self._gpus[first], self._gpus[second], capability)
        return None if status is None else bool(status == _plain(self._nvml.NVML_P2P_STATUS_OK))


def _plain(constant: Any) -> int:
    """Return a constant of the bindings as a number: some versions end these lines with a comma, making them tuples."""
    return int(constant[0] if isinstance(constant, tuple) else constant)


def _text(value: Any) -> str | None:
    """Return text; older versions of the bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _bus_id(info: Any) -> str | None:
    return None if info is None else _text(info.busId)
