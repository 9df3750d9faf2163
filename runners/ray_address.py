"""The address of somebody's Ray: is it one, and does its head still answer there?"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

NAMED_ADDRESSES = ("auto", "local")
CONNECT_S = 3.0
LOOK_EVERY_S = 2.0
SILENT_S = 10.0
"""How long a head may not be reached before it counts as gone. Ray itself ends the whole process after a minute of that
(seen on 2.60), which is too late to close anything."""


def address_problem(address: str) -> str | None:
    """Return why there is no Ray at this address, or None. Ray itself would try for minutes, and fill the screen."""
    if address in NAMED_ADDRESSES:
        return None
    place = _place(address)
    if place is None:
        return "not an address. Expected HOST:PORT, ray://HOST:PORT or auto"
    try:
        socket.create_connection(place, CONNECT_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        return f"nothing answers there ({reason}). Start it with `ray start --head`, or leave the address away"
    return None


class HeadWatch:
    """Whether the head of a cluster still answers. It is looked at now and then, whenever somebody asks."""

    def __init__(
        self,
        address: str,
        problem: Callable[[str], str | None] = address_problem,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address, self._problem, self._clock = address, problem, clock
        self._answered_at = self._looked_at = clock()

    def is_gone(self) -> bool:
        """Return whether nothing has answered for a while."""
        if self._clock() - self._looked_at >= LOOK_EVERY_S:
            answers = self._problem(self._address) is None
            self._looked_at = self._clock()
            self._answered_at = self._looked_at if answers else self._answered_at
        return self._looked_at - self._answered_at >= SILENT_S


def _place(address: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(address if "://" in address else f"ray://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return None if host is None or port is None else (host, port)
