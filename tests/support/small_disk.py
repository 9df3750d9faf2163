"""A disk of a few MiB that can be filled, emptied and made read-only: a tmpfs, which only root may mount."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SIZE = "6m"
FILLER = "filler"


@dataclass(frozen=True)
class SmallDisk:
    """A mounted disk."""

    path: Path

    def fill(self) -> None:
        """Write until nothing fits any more."""
        try:
            with (self.path / FILLER).open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        except OSError:
            return

    def free(self) -> None:
        """Make room again."""
        (self.path / FILLER).unlink(missing_ok=True)

    def make_read_only(self, yes: bool = True) -> None:
        """Remount it."""
        subprocess.run(["mount", "-o", f"remount,{'ro' if yes else 'rw'}", str(self.path)], check=True)


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Mount one at a new folder, or skip the test and say why it cannot be done here."""
    path.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
