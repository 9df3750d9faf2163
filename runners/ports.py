"""TCP ports on the loopback interface: a free one, and whose a listening one is."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection, Iterable

from runners.processes import all_pids, read_bytes

HOST = "127.0.0.1"
FIRST_PORT, LAST_PORT = 20000, 28999
"""Below the ports that Linux gives to outgoing connections (32768 on), which come and go by themselves."""
TRIES = 200
_LISTEN = b"0A"


class NoFreePortError(OSError):
    """No port was free in many tries."""


def free_port(also: Collection[int] = (), within: tuple[int, int] | None = None) -> int:
    """Return a port that nobody listens on now, and whose neighbours at these distances are free as well.

    Args:
        also: Distances to other ports that are taken with it.
        within: First and last port that may be chosen, of a slot that has some to itself.

    Raises:
        NoFreePortError: after many tries.
    """
    first, last = within or (FIRST_PORT, LAST_PORT)
    number = max(1, last - first + 1 - max((distance for distance in also if distance > 0), default=0))
    for _ in range(TRIES):
        port = first + secrets.randbelow(number)
        if all(is_free(port + distance) for distance in (0, *also)):
            return port
    raise NoFreePortError(f"no free port between {first} and {last} in {TRIES} tries")


def is_listening(port: int) -> bool:
    """True when some process of this network namespace listens on the port, on whatever address."""
    return bool(_listening_inodes(port))


def listeners(port: int, pids: Iterable[int] | None = None) -> list[int]:
    """Return which of these processes (by default: of all that can be seen) listen on the port."""
    inodes = _listening_inodes(port)
    if not inodes:
        return []
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return [pid for pid in (all_pids() if pids is None else pids) if wanted & _open_files(pid)]


def is_free(port: int) -> bool:
    """True when a socket can be bound to this port of the loopback interface now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _listening_inodes(port: int) -> set[int]:
    """Return the inodes of the sockets that listen on the port. Source: proc_net_tcp in the kernel's documentation."""
    suffix = f":{port:04X}".encode()
    found: set[int] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (read_bytes(table) or b"").splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(suffix) and fields[3] == _LISTEN:
                found.add(int(fields[9]))
    return found


def _open_files(pid: int) -> set[str]:
    found: set[str] = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            found.add(os.readlink(entry.path))  # noqa: PTH115 - a name of the kernel, no path
    except OSError:
        return found  # gone, or not ours to look at
    return found
