"""Lay the artifacts of a run into one folder, redacted and bounded, so that one call can upload them."""

from __future__ import annotations

import os
from pathlib import Path

from agent.mirror.snapshot import MirroredRun
from agent.redaction import environment_secrets, redact_text

MAX_FILE_BYTES = 5 * 2**20
"""Size from which a copied file is cut in its middle: the start and the end of a log tell most."""


def stage(run: MirroredRun, folder: Path, max_file_bytes: int = MAX_FILE_BYTES) -> int:
    """Write the run's artifacts into the folder and return how many; a file that is gone is left out."""
    count = 0
    for name, text in run.texts.items():
        _write(folder / name, text)
        count += 1
    for name, source in run.files.items():
        content = read_bounded(Path(source), max_file_bytes)
        if content is not None:
            _write(folder / name, redact_text(content, run.secrets | environment_secrets(os.environ)))
            count += 1
    return count


def read_bounded(path: Path, max_bytes: int) -> str | None:
    """Return the file's text, cut in the middle beyond `max_bytes` with a line that says so; None if it is gone."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if size <= max_bytes:
                return file.read().decode("utf-8", "replace")
            head = file.read(max_bytes // 2)
            file.seek(size - max_bytes // 2)
            tail = file.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    left_out = size - len(head) - len(tail)
    note = f"\n[... {left_out} bytes left out here; the whole file is {path.name} in the study's artifact folder ...]\n"
    return head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")
