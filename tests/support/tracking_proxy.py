"""A wire between the agent and a tracking server that a test may cut, or make slow."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress


class TrackingProxy:
    """Listens on loopback and passes connections on. Not for many of them at once."""

    def __init__(self, port: int) -> None:
        """Begin to listen.

        Args:
            port: Port of the server behind it.
        """
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.delay_s = 0.0
        """Added before each request is passed on."""
        self.is_cut = False
        """While true every connection is closed at once, as a proxy does whose server is away."""
        self.served = 0
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Address to give to the agent."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break what is open and refuse what comes."""
        self.is_cut = True
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Pass connections on again."""
        self.is_cut = False

    def close(self) -> None:
        """Stop listening."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            if self.is_cut:
                return
            with suppress(OSError), socket.create_connection(self._target) as server:
                self.served += 1
                ends = {client, server}
                self._open |= ends
                answered = threading.Event()
                answered.set()
                back = threading.Thread(target=_pump, args=(server, client, answered.set), daemon=True)
                back.start()
                _pump(client, server, lambda: self._wait_before(answered))
                back.join()
                self._open -= ends

    def _wait_before(self, answered: threading.Event) -> None:
        """Delay the first part of what follows an answer: a request may come in several parts."""
        if answered.is_set():
            answered.clear()
            time.sleep(self.delay_s)


def _pump(source: socket.socket, sink: socket.socket, before: Callable[[], None]) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            before()
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
