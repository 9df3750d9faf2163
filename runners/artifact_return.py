"""The files of a trial that ran on a node without the study's folder: they come back in bounded pieces.

The agent leaves a mark in a trial's folder before it hands the trial out. A worker that finds the mark sees the same
folder (the same host, or a shared file system) and writes there. Any other works in a folder of its own, and sends back
what lies in it: each file as a row of pieces, so that no log has to fit into anybody's memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from runners.contract import RunRecord, TrialRequest

MARK = ".agent-folder"
PIECE_BYTES = 4 * 2**20
LARGEST_FILE_BYTES = 512 * 2**20
"""A larger file comes back as its beginning and its end: what went wrong stands in one of the two."""
Piece = TypeVar("Piece")


@dataclass(frozen=True, slots=True)
class Returned(Generic[Piece]):
    """A record as JSON, the folder that it speaks of, and the files in it: relative path → pieces, in order."""

    record: str
    folder: str
    files: dict[str, list[Piece]]


def mark(request: TrialRequest) -> None:
    """Leave the mark that tells a worker whether it sees this folder."""
    folder = Path(request.artifact_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(request.cookie, encoding="utf-8")


def sees_folder(request: TrialRequest) -> bool:
    """Return whether this process sees the very folder of the request, and not one of the same name."""
    try:
        return (Path(request.artifact_dir) / MARK).read_text(encoding="utf-8") == request.cookie
    except OSError:
        return False


@contextmanager
def at_hand(requests: Sequence[TrialRequest]) -> Iterator[list[TrialRequest]]:
    """Give requests whose folders this node cannot see folders of its own, which are gone afterwards."""
    if all(map(sees_folder, requests)):
        yield list(requests)
        return
    own = Path(tempfile.mkdtemp(prefix="agent-trial-"))
    try:
        yield [
            request.model_copy(update={"artifact_dir": str(own / str(index))}) for index, request in enumerate(requests)
        ]
    finally:
        shutil.rmtree(own, ignore_errors=True)


def packed(asked: TrialRequest, ran: TrialRequest, record: RunRecord, put: Callable[[bytes], Piece]) -> Returned[Piece]:
    """Return a record with the files that its agent cannot see; `put` hands over one piece.

    Args:
        asked: The request as it came.
        ran: The request as it was run; in the same folder there is nothing to send.
        record: What came of it.
        put: Hands over one piece of a file and returns what stands for it.
    """
    folder = Path(ran.artifact_dir)
    is_elsewhere = ran.artifact_dir != asked.artifact_dir and folder.is_dir()
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()] if is_elsewhere else []
    files = {str(path.relative_to(folder)): [put(piece) for piece in _pieces(path)] for path in paths}
    return Returned(record.model_dump_json(), ran.artifact_dir, files)


def unpacked(returned: Returned[Piece], request: TrialRequest, get: Callable[[Piece], bytes]) -> RunRecord:
    """Write the files into the trial's folder, one piece at a time, and return the record with its paths there."""
    folder = Path(request.artifact_dir)
    for name, pieces in returned.files.items():
        _write(folder / name, map(get, pieces), folder)
    (folder / MARK).unlink(missing_ok=True)
    record = RunRecord.model_validate_json(returned.record)
    return record if returned.folder == request.artifact_dir else _moved(record, returned.folder, request.artifact_dir)


def _pieces(path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size > LARGEST_FILE_BYTES:
            half = LARGEST_FILE_BYTES // 2
            yield from _read(file.read, half)
            yield f"\n[agent: {size - 2 * half} bytes are left out here]\n".encode()
            file.seek(size - half)
            size = half
        yield from _read(file.read, size)


def _read(read: Callable[[int], bytes], left: int) -> Iterator[bytes]:
    while left > 0 and (piece := read(min(PIECE_BYTES, left))):
        left -= len(piece)
        yield piece


def _write(path: Path, pieces: Iterable[bytes], within: Path) -> None:
    if not path.resolve().is_relative_to(within.resolve()):
        raise ValueError(f"a node sent back a file that does not belong into the trial's folder: {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)


def _moved(record: RunRecord, before: str, after: str) -> RunRecord:
    paths = {name: getattr(record, name) for name in ("log_path", "stacks_path")}
    moved = {
        name: after + path.removeprefix(before) for name, path in paths.items() if path and path.startswith(before)
    }
    return record.model_copy(update=moved)
