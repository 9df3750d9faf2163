"""A fingerprint of the files of a model, or of a node model, that is cheap for hundreds of gigabytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

WHOLE_BYTES = 1 << 20
"""Files up to this size (configuration, index, tokenizer) are read whole."""
END_BYTES = 1 << 16
"""Of larger ones (weights) the first and the last bytes are read: the head of a safetensors file lays out its tensors,
and other weights differ in their last ones too."""
DIGITS = 16


def files_digest(place: str | None) -> str | None:
    """Return a digest of a file, or of all files below a folder with their names and sizes.

    None for what is not on this machine: a name on a hub is not looked up.
    """
    if place is None or not (path := Path(place).expanduser()).exists():
        return None
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and not _is_hidden(file, path):
            name = file.relative_to(path) if path.is_dir() else file.name
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            digest.update(_sample(file))
    return digest.hexdigest()[:DIGITS]


def _is_hidden(file: Path, root: Path) -> bool:
    """Version control and download caches beside the model are none of it."""
    return any(part.startswith(".") for part in file.relative_to(root).parts[:-1])


def _sample(file: Path) -> bytes:
    with file.open("rb") as content:
        size = file.stat().st_size
        if size <= WHOLE_BYTES:
            return content.read()
        head = content.read(END_BYTES)
        content.seek(-END_BYTES, 2)
        return head + content.read()
