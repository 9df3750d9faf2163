"""What a serving engine says about itself, asked once over its own port: evidence beside its log."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path

from search_spaces import Scalar

FILE = "server_info.json"
TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 8 * 2**20
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Without the user's proxy, which has no business on the loopback interface."""


class NoInfoError(Exception):
    """The server did not say; the text is what it answered instead."""


def ask(base_url: str, paths: Sequence[str], names: Collection[str]) -> dict[str, Scalar]:
    """Return what the server says of these names; null is `none`, and what is no single value is left out.

    Only the names that are asked for are kept: the whole answer may hold the server's keys.

    Args:
        base_url: Scheme, host and port.
        paths: Pages to ask, the newest first; the first one that exists counts.
        names: Names of arguments.

    Raises:
        NoInfoError: no page of them gave a JSON object.
    """
    problems = []
    for path in paths:
        try:
            with _DIRECT.open(f"{base_url}{path}", timeout=TIMEOUT_S) as answer:
                content = json.loads(answer.read(MAX_ANSWER_BYTES))
        except (OSError, HTTPException, ValueError) as error:  # HTTPError and URLError are OSErrors
            problems.append(f"{path}: {error}")
            continue
        if isinstance(content, dict):
            known = {name: content[name] for name in names if name in content}
            return {name: _scalar(value) for name, value in known.items() if _is_single(value)}
        problems.append(f"{path}: no JSON object")
    raise NoInfoError("; ".join(problems))


def save(folder: Path, info: Mapping[str, Scalar]) -> None:
    """Keep the answer beside the launch's log."""
    (folder / FILE).write_text(json.dumps(info, indent=1) + "\n", encoding="utf-8")


def saved(folder: Path) -> dict[str, Scalar]:
    """Return the answer that was kept of a launch, empty where there is none."""
    path = folder / FILE
    if not path.is_file():
        return {}
    content: dict[str, Scalar] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _is_single(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _scalar(value: object) -> Scalar:
    return value if isinstance(value, bool | int | float | str) else "none"
