"""The map for readers: JSON for programs, Markdown for people, HTML for the tracking server's artifact view."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

from agent.deadends.dead_end import DeadEnd

_COLUMNS = ("id", "what cannot work here", "reason", "state", "seen in", "does not matter", "depends on", "cure")


def as_json(dead_ends: Sequence[DeadEnd]) -> str:
    """Return the map as a JSON array."""
    return json.dumps([found.model_dump(mode="json") for found in dead_ends], indent=2, ensure_ascii=False)


def as_markdown(dead_ends: Sequence[DeadEnd]) -> str:
    """Return the map as a Markdown table."""
    if not dead_ends:
        return "No dead ends.\n"
    lines = [_markdown_row(_COLUMNS), _markdown_row(["---"] * len(_COLUMNS))]
    lines += [_markdown_row(_cells(found)) for found in dead_ends]
    return "\n".join(lines) + "\n"


def as_html(dead_ends: Sequence[DeadEnd], title: str) -> str:
    """Return the map as a self-contained page; whatever comes from a log is escaped."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in _COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(found)) + "</tr>" for found in dead_ends
    )
    style = "body{font:14px system-ui;margin:2em}td,th{border:1px solid #ccc;padding:.4em .6em;text-align:left}"
    return (
        f"<!doctype html><meta charset='utf-8'><title>{html.escape(title)}</title><style>{style}"
        f"table{{border-collapse:collapse}}</style><h1>{html.escape(title)}</h1>"
        f"<table><tr>{head}</tr>{rows}</table>\n"
    )


def _cells(found: DeadEnd) -> list[str]:
    scope = ", ".join(f"{name}={_short(value)}" for name, value in found.scope.items())
    return [
        found.id,
        str(found),
        found.reason.value,
        found.state.value,
        " ".join(found.support),
        ", ".join(found.does_not_matter),
        scope,
        found.cure,
    ]


def _short(value: object) -> str:
    """A dictionary of packages or a matrix of links is named, not spelled out."""
    return str(value) if isinstance(value, bool | int | float | str) else "…"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
