"""GPUs that one agent of this machine holds for itself, so that no other measures beside it without knowing.

A claim is a name in the kernel (an abstract Unix socket), which ends with the process however it dies, needs no folder
and holds for every user. It reaches as far as the network namespace: agents in containers of their own do not see it.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress

PREFIX = "\0serving-search-agent/gpu/"
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a socket's other end (unix(7), SO_PEERCRED)."""


class GpuTakenError(RuntimeError):
    """Another agent holds the GPU."""


class GpuClaims:
    """The GPUs of one agent.

    Args:
        identities: Number of each GPU, as NVML counts → what names it on this machine (its UUID).
    """

    def __init__(self, identities: Mapping[int, str]) -> None:
        self._identities = dict(sorted(identities.items()))
        self._held: list[socket.socket] = []

    def take(self) -> None:
        """Hold all of them, or none.

        Raises:
            GpuTakenError: another agent holds one.
        """
        try:
            for gpu, identity in self._identities.items():
                self._held.append(_claimed(gpu, PREFIX + identity))
        except GpuTakenError:
            self.release()
            raise

    def release(self) -> None:
        """Give them back. May be called again."""
        while self._held:
            self._held.pop().close()


def _claimed(gpu: int, name: str) -> socket.socket:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(name)
        claim.listen(1)
    except OSError as error:
        claim.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise GpuTakenError(
            f"GPU {gpu} is held by another agent on this machine{_process_behind(name)}: trials side by side would not "
            "measure themselves. Wait until it ends, or give each agent GPUs of its own with CUDA_VISIBLE_DEVICES"
        ) from None
    return claim


def _process_behind(name: str) -> str:
    """Return which process holds a claim, in words; empty where that cannot be seen."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.connect(name)
        pid, _, _ = _CREDENTIALS.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        return f" (process {pid})" if pid else ""
    return ""
