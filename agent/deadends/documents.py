"""The map for readers: JSON for programs, Markdown for people, HTML for the tracking server's artifact view.

One block for each dead end, not a row of a table: the view of a tracking server is narrow, and a cure is a sentence.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

from agent.deadends.dead_end import DeadEnd

_STYLE = (
    "body{font:14px/1.45 system-ui;margin:1.5em;max-width:60em}h2{font-size:1.05em;margin:1.6em 0 .4em}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em;margin:0}dt{color:#666}dd{margin:0}"
    "code{white-space:pre-wrap;overflow-wrap:anywhere}"
)
_CODE = "the line that tells"


def as_json(dead_ends: Sequence[DeadEnd]) -> str:
    """Return the map as a JSON array."""
    return json.dumps([found.model_dump(mode="json") for found in dead_ends], indent=2, ensure_ascii=False)


def as_markdown(dead_ends: Sequence[DeadEnd]) -> str:
    """Return the map as Markdown, one section for each dead end; a log's text stands as code, on one line."""
    if not dead_ends:
        return "No dead ends.\n"
    return "\n".join(_markdown_block(found) for found in dead_ends)


def as_html(dead_ends: Sequence[DeadEnd], title: str) -> str:
    """Return the map as a self-contained page; whatever comes from a log is escaped."""
    blocks = "".join(map(_html_block, dead_ends)) or "<p>No dead ends.</p>"
    return (
        f"<!doctype html><meta charset='utf-8'><title>{html.escape(title)}</title><style>{_STYLE}</style>"
        f"<h1>{html.escape(title)}</h1>{blocks}\n"
    )


def _facts(found: DeadEnd) -> dict[str, str]:
    """Return what a reader wants to know of a dead end besides its conditions, by label; nothing is empty."""
    facts = {
        "reason": f"{found.reason.value} ({found.state.value})",
        "seen in": " ".join(found.support),
        "yet passed in": " ".join(found.contradicting),
        _CODE: " ".join(found.decisive.split()),
        "cure": " ".join(found.cure.split()),
        "does not matter": ", ".join(found.does_not_matter),
        "instead": "; ".join(f"{escape} ({escape.why})" for escape in found.escapes),
        "inherited from": f"study {found.origin}" if found.origin else "",
        "only where": "; ".join(f"{name} in {', '.join(map(str, values))}" for name, values in found.within.items()),
        "depends on": scope_words(found),
    }
    return {label: text for label, text in facts.items() if text}


def scope_words(found: DeadEnd) -> str:
    """Return the facts a dead end depends on, with the values it was seen with."""
    return ", ".join(f"{name}={_short(value)}" for name, value in found.scope.items())


def _markdown_block(found: DeadEnd) -> str:
    lines = [f"### {found.id}: {found}", ""]
    for label, text in _facts(found).items():
        lines.append(f"- {label}: {_code_span(text) if label == _CODE else html.escape(text, quote=False)}")
    return "\n".join(lines) + "\n"


def _code_span(text: str) -> str:
    """A log's text with backticks cannot end the span: its fence is longer than any run of them."""
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}"


def _html_block(found: DeadEnd) -> str:
    rows = "".join(
        f"<dt>{label}</dt><dd>{f'<code>{html.escape(text)}</code>' if label == _CODE else html.escape(text)}</dd>"
        for label, text in _facts(found).items()
    )
    return f"<h2>{html.escape(found.id)}: {html.escape(str(found))}</h2><dl>{rows}</dl>"


def _short(value: object) -> str:
    """A dictionary of packages or a matrix of links is named, not spelled out."""
    return str(value) if isinstance(value, bool | int | float | str) else "…"
