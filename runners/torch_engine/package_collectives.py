"""All-reduces that live in the packages of SGLang and vLLM, called through the classes that these engines use.

They are looked up in whichever Python runs this, at the time they are asked for, and nothing is assumed: a class that
is missing, or whose constructor has other arguments, is *not probed*, and the reason is said. One that switches itself
off here is replaced as the engine replaces it, with what comes behind it in the chain.

Source of the names: SGLang 0.5.6, 0.5.12, 0.5.16 and 0.5.23 srt/distributed/device_communicators (custom_all_reduce,
custom_all_reduce_v2, torch_symm_mem) and parallel_state.py; vLLM 0.32 distributed/device_communicators
(custom_all_reduce, symm_mem, flashinfer_all_reduce) and cuda_communicator.py.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


class NotProbedError(RuntimeError):
    """The collective cannot be called from here, which says nothing about whether the engine can."""


@dataclass(frozen=True, slots=True)
class PackageCollective:
    """Where an engine keeps an all-reduce, and how it calls it."""

    package: str
    """Distribution, for its version."""
    module: str
    type_name: str
    call: str
    """Method that takes a tensor and returns its sum over ranks."""
    accepts: str
    """Method that says whether it takes a tensor; the engine sums others with NCCL."""
    swallows_errors: bool = False
    """Whether the engine goes on without it when its constructor raises."""


_SGLANG, _VLLM = "sglang.srt.distributed.device_communicators", "vllm.distributed.device_communicators"
PACKAGE_COLLECTIVES = {
    "sglang.custom_v2": PackageCollective(
        "sglang", f"{_SGLANG}.custom_all_reduce_v2", "CustomAllReduceV2", "custom_all_reduce", "should_custom_ar", True
    ),
    "sglang.custom": PackageCollective(
        "sglang", f"{_SGLANG}.custom_all_reduce", "CustomAllreduce", "custom_all_reduce", "should_custom_ar", True
    ),
    "sglang.torch_symm_mem": PackageCollective(
        "sglang",
        f"{_SGLANG}.torch_symm_mem",
        "TorchSymmMemCommunicator",
        "all_reduce",
        "should_torch_symm_mem_allreduce",
    ),
    "vllm.custom": PackageCollective(
        "vllm", f"{_VLLM}.custom_all_reduce", "CustomAllreduce", "custom_all_reduce", "should_custom_ar"
    ),
    "vllm.torch_symm_mem": PackageCollective(
        "vllm", f"{_VLLM}.symm_mem", "SymmMemCommunicator", "all_reduce", "should_use_symm_mem"
    ),
    "vllm.flashinfer": PackageCollective(
        "vllm", f"{_VLLM}.flashinfer_all_reduce", "FlashInferAllReduce", "all_reduce", "should_use_fi_ar"
    ),
}
"""Name in a probe's chain → where it is. All constructors take the ranks' CPU group and the device."""
_PARALLEL_STATE = {"sglang": "sglang.srt.distributed.parallel_state", "vllm": "vllm.distributed.parallel_state"}
"""Package → the module that holds its groups of ranks."""


class PackageAllReduce:
    """An engine's all-reduce, with NCCL for the messages that it leaves to others, as in the engine."""

    def __init__(self, wiring: PackageCollective, communicator: Any, group: dist.ProcessGroup, width: int) -> None:
        self._call: Callable[[torch.Tensor], torch.Tensor] = getattr(communicator, wiring.call)
        self._accepts: Callable[[torch.Tensor], bool] = getattr(communicator, wiring.accepts)
        self._communicator = communicator
        self._group = group
        self._width = width
        self.declined_to = ""
        """What summed the last message instead; empty when this did."""

    def __call__(self, summand: torch.Tensor) -> torch.Tensor:
        numel = summand.numel()
        rows = summand.view(-1, self._width if numel % self._width == 0 else numel)
        if self._accepts(rows):
            self.declined_to = ""
            return self._call(rows).view_as(summand)
        self.declined_to = dist.get_backend(self._group)
        dist.all_reduce(summand, group=self._group)
        return summand

    def close(self) -> None:
        """Give back what it holds, while the ranks are still together."""
        close: Callable[[], None] = getattr(self._communicator, "close", lambda: None)
        close()

    def capture(self) -> AbstractContextManager[Any]:
        """The context in which the engine captures graphs with it."""
        around: Callable[[], AbstractContextManager[Any]] = getattr(self._communicator, "capture", nullcontext)
        return around()


def communicator_type(name: str) -> type[Any]:
    """The engine's class behind a name.

    Raises:
        NotProbedError: it cannot be imported here, or is not built as it was in the versions above.
    """
    wiring = PACKAGE_COLLECTIVES[name]
    try:
        found = getattr(importlib.import_module(wiring.module), wiring.type_name)
    except Exception as error:  # an import runs an engine's code, which may raise anything
        raise NotProbedError(f"{wiring.module} cannot be imported here ({type(error).__name__}: {error})") from error
    required = {
        each.name
        for each in inspect.signature(found.__init__).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    } - {"self"}
    methods = [method for method in (wiring.call, wiring.accepts) if not hasattr(found, method)]
    if not required <= {"group", "device"} or methods:
        raise NotProbedError(
            f"{wiring.type_name} of {wiring.package} {version_of(wiring.package)} is built or called otherwise than "
            f"known here (it needs {', '.join(sorted(required))}{'; no ' if methods else ''}{', '.join(methods)})"
        )
    return found  # type: ignore[no-any-return]


def join_world_group(package: str, rank: int) -> None:
    """Make the engine's world group of the ranks that are joined already, where the engine has one.

    Its classes ask for it: the check which GPUs reach each other, for one (SGLang 0.5.8 to 0.5.23, vLLM 0.29 to 0.33,
    both ``distributed/parallel_state.py``, ``init_distributed_environment``: of ranks that torch has joined it makes
    only this group).

    Raises:
        NotProbedError: the engine makes it otherwise than known here.
    """
    size, backend = dist.get_world_size(), dist.get_backend()
    try:
        module = importlib.import_module(_PARALLEL_STATE[package])
        if getattr(module, "_WORLD", None) is None:
            module.init_distributed_environment(world_size=size, rank=rank, local_rank=rank, backend=backend)
    except Exception as error:  # the engine's own code, which may raise anything
        raise NotProbedError(
            f"the world group of {package} {version_of(package)} is made otherwise than known here "
            f"({type(error).__name__}: {error})"
        ) from error


def version_of(package: str) -> str:
    """The installed version of a distribution, or ``unknown``."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def import_packages(names: Iterable[str]) -> None:
    """Import the engines' modules behind these collectives; what cannot be imported is said by its probe."""
    for name in names:
        with suppress(NotProbedError):
            communicator_type(name)
