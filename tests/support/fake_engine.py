"""A Python that, told to run an engine's server, says what the real one once said and then serves like the stub.

PYTHON -m sglang.launch_server --port 20000 …     with FAKE_LOG and FAKE_METRICS in its environment
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

STUB = Path(__file__).with_name("stub_server.py")
READY = ("The server is fired up and ready to roll", "Application startup complete")


def fake_python(folder: Path) -> str:
    """Write the program and return its path."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S {Path(__file__)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def lines_until_ready(log: Path) -> list[str]:
    """Return the lines of a recorded log up to the one that says that the server is up."""
    lines = log.read_text(encoding="utf-8").splitlines()
    ready = [number for number, line in enumerate(lines, start=1) if any(text in line for text in READY)]
    return lines[: max(ready)]


def main(argv: list[str]) -> None:
    """Become the stub server."""
    port = argv[argv.index("--port") + 1]
    said = [text for line in lines_until_ready(Path(os.environ["FAKE_LOG"])) for text in (f"--log-line={line}",)]
    options = ["--port", port, "--metrics", os.environ["FAKE_METRICS"], *said]
    os.execv(sys.executable, [sys.executable, "-S", "-u", str(STUB), *options])  # noqa: S606 - an argument list


if __name__ == "__main__":
    main(sys.argv[1:])
