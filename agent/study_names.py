"""Names of studies: each is somebody's own."""

from __future__ import annotations

from agent.store.manifest import Manifest


def named(manifest: Manifest, name: str) -> Manifest:
    """Return the description with another name."""
    return manifest.model_copy(update={"settings": manifest.settings.model_copy(update={"name": name})})


def free_name(wanted: str, known: list[str]) -> str:
    """Return the name, or with the first number that makes it one that nobody has."""
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in range(1, len(known) + 2))
    return next(name for name in names if name not in known)
