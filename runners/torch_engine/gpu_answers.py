"""What an import asks about the GPUs, answered without touching CUDA.

Engines look at the GPUs while they are imported (SGLang 0.5.16: its kernels' package picks a library by compute
capability). A process that did so through CUDA can no longer fork ranks that use a GPU. So a child asks once, and while
the import runs torch answers from what it said; in a rank, where CUDA is there, the very same functions ask CUDA.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

Properties = dict[str, Any]
"""Plain attributes of a device's properties, by name."""


def ask_in_a_child() -> list[Properties]:
    """The properties of the visible GPUs, asked in a process of its own; empty where there is none."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(readable)
        _answer(writable)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    found: list[Properties] = json.loads(text) if text else []
    return found


def _answer(writable: int) -> None:
    """The child's whole life: whatever goes wrong, it says nothing."""
    try:
        devices = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        os.write(writable, json.dumps([_plain(each) for each in devices]).encode())
    finally:
        os._exit(0)


def _plain(properties: Any) -> Properties:
    names = (name for name in dir(properties) if not name.startswith("_"))
    values = {name: getattr(properties, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}


@contextmanager
def answered_without_cuda(devices: Sequence[Properties]) -> Iterator[None]:
    """Let torch answer questions about the GPUs from ``devices`` as long as this process has not touched CUDA."""
    if not devices:
        yield
        return
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: len(devices),
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: SimpleNamespace(**devices[_index(device)]),
        "get_device_capability": lambda device=None: (
            devices[_index(device)]["major"],
            devices[_index(device)]["minor"],
        ),
        "get_device_name": lambda device=None: devices[_index(device)]["name"],
    }
    originals = {name: getattr(torch.cuda, name) for name in answers}
    for name, answer in answers.items():
        setattr(torch.cuda, name, _either(originals[name], answer))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch.cuda, name, original)


def _either(original: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    """The original where CUDA is there: an engine may have kept the function under a name of its own."""

    def ask(*arguments: Any, **named: Any) -> Any:
        is_there: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        return (original if is_there else answer)(*arguments, **named)

    return ask


def _index(device: Any) -> int:
    """The number of a device, as torch's functions take it: a number, a name, a ``torch.device`` or nothing."""
    if device is None:
        return 0
    return device if isinstance(device, int) else torch.device(device).index or 0
