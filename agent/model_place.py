"""Where a model or a draft lies: a folder here, looked at before anything is launched, or a name on a hub."""

from __future__ import annotations

import json
import re
from pathlib import Path

from agent.spec import StudySpec
from search_spaces import SpecificationError, read_text

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[\w.-]{1,96})?", re.ASCII)
"""ORGANISATION/MODEL, or the bare name of an old model. Source: huggingface_hub 1.0 utils/_validators.py."""
_CONFIGURATIONS = ("config.json", "params.json")
_SINGLE_FILES = (".gguf",)
MAX_CONFIG_BYTES = 16 * 2**20


def model_place(spec: StudySpec, key: str, written: str | None) -> str | None:
    """Return a model's folder with its whole path, since the engine may run elsewhere; a hub's name as it is.

    Args:
        spec: The study, for errors that point to where the model was named.
        key: `model` or `draft`.
        written: What stands there.

    Raises:
        UsageError, SpecificationError: no such folder, one without a model, or no name that a hub can have.
    """
    if written is None:
        return None
    try:
        path = Path(written).expanduser()
        is_there = path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a home of nobody, a NUL
        raise spec.error(f"this is no path and no name of a hub: {error}", key) from error
    if is_there:
        _check_model(spec, key, path)
        return str(path.absolute())
    if not _HUB_NAME.fullmatch(written):
        raise spec.error(f"there is no {path}: give the folder of a model, or a name such as ORGANISATION/MODEL", key)
    return written


def _check_model(spec: StudySpec, key: str, path: Path) -> None:
    if path.is_file():
        if path.suffix not in _SINGLE_FILES:
            raise spec.error(f"{path} is a file: give the folder that holds the model's config.json", key)
        return
    found = next((path / name for name in _CONFIGURATIONS if (path / name).is_file()), None)
    if found is None:
        if any(path.glob("*.gguf")):
            return
        raise spec.error(f"{path} has no config.json: this is no folder of a model", key)
    try:
        content = json.loads(read_text(found, MAX_CONFIG_BYTES))
    except (SpecificationError, ValueError, RecursionError) as error:
        where = str(error) if isinstance(error, SpecificationError) else f"{found}: not JSON ({error})"
        raise spec.error(f"its configuration cannot be read: {where}", key) from error
    if not isinstance(content, dict):
        raise spec.error(f"its configuration cannot be read: {found} is no JSON object", key)
