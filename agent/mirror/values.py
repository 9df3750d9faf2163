"""Turn stored values into text that every MLflow server accepts and that hides secrets."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from agent.mirror import schema
from agent.mirror.snapshot import MetricPoint
from agent.redaction import MASK, is_secret, redact_json, redact_text

_FORBIDDEN = re.compile(r"[^/\w.\- ]")
_UNSTORABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


def clean_name(name: str) -> str:
    """Return a name that MLflow accepts for a tag, param or metric."""
    safe = _FORBIDDEN.sub("_", name)
    if posixpath.normpath(safe) != safe or safe.startswith(("/", "..")):
        safe = safe.replace("/", "_").lstrip(".") or "_"
    return safe[: schema.MAX_NAME]


def storable(text: str) -> str:
    """Return the text without characters that some database refuses (NUL, lone surrogates)."""
    return _UNSTORABLE.sub("�", text)


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters, the cut marked."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(value: object) -> str:
    """Return a value as a reader would write it: text bare, everything else as JSON; an empty text as two quotes."""
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def tag_values(values: Mapping[str, object], secrets: Iterable[str] = ()) -> dict[str, str]:
    """Return tags of these values; a value of None or empty text is left out."""
    kept = {name: value for name, value in values.items() if value is not None and value != ""}
    return {clean_name(name): _masked(name, value, secrets, schema.MAX_TAG) for name, value in kept.items()}


def param_values(values: Mapping[str, object], secrets: Iterable[str] = (), prefix: str = "") -> dict[str, str]:
    """Return params of these values, their names prefixed."""
    return {
        clean_name(prefix + name): _masked(name, value, secrets, schema.MAX_PARAM) for name, value in values.items()
    }


def flatten(value: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return nested mappings as one, keys joined by dots; None and empty mappings are left out."""
    flat: dict[str, object] = {}
    for name, item in value.items():
        if isinstance(item, Mapping):
            flat.update(flatten(item, f"{prefix}{name}."))
        elif item is not None:
            flat[f"{prefix}{name}"] = item
    return flat


DIGITS = 6
"""Of a metric's value."""


def metric(name: str, value: float | None, step: int = 0) -> list[MetricPoint]:
    """Return the point, or nothing for a value that is missing or not finite (no chart can show it).

    Six digits: MLflow's tables show every one that there is, and more are noise. The storage has them all.
    """
    if value is None or not math.isfinite(value):
        return []
    return [MetricPoint(clean_name(name), float(f"{value:.{DIGITS}g}"), step)]


def milliseconds(moment: datetime) -> int:
    """Return MLflow's form of a time."""
    return round(moment.timestamp() * 1000)


def pretty_json(value: object) -> str:
    """Return redacted JSON for a reader."""
    return json.dumps(redact_json(value), indent=2, sort_keys=True, default=str, ensure_ascii=False) + "\n"


def _masked(name: str, value: object, secrets: Iterable[str], limit: int) -> str:
    if not isinstance(value, bool | Mapping) and is_secret(name, value):
        return MASK
    return shorten(storable(redact_text(plain(redact_json(value)), secrets)), limit)
