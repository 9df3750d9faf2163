"""For programs: what was found as one JSON or YAML document."""

from __future__ import annotations

import json

import yaml

from agent.export.takeaway import Reference, Takeaway, Word


def as_json(taken: Takeaway) -> str:
    """Return the configuration as JSON; a secret stands as `${NAME}`."""
    return json.dumps(_document(taken), indent=2, ensure_ascii=False) + "\n"


def as_yaml(taken: Takeaway) -> str:
    """Return the same as YAML."""
    return yaml.safe_dump(_document(taken), sort_keys=False, allow_unicode=True, width=1000)


def _document(taken: Takeaway) -> dict[str, object]:
    return {
        "study": taken.study,
        "trial": taken.trial,
        "found": taken.said,
        "engine": taken.engine,
        "version": taken.version,
        "assignment": dict(taken.assignment),
        "command": [_text(word) for word in taken.argv],
        "environment": {name: _text(word) for name, word in taken.env.items()},
        "secrets": list(taken.secrets),
    }


def _text(word: Word) -> str:
    return "".join(f"${{{part.variable}}}" if isinstance(part, Reference) else part for part in word)
