"""What a failure looks like, without what differs from one launch to the next.

Two failures of one cause strike in the same phase and say the same, but for numbers, addresses, paths and ranks. Two
causes of one reason mostly say something else: so signatures keep apart what the reason alone would mix.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent.outcome import Failure

LONGEST = 160
"""Characters of a line that tell: what comes later is mostly values."""
_CHANGING = (
    (re.compile(r"^(?:\s*[\[(][^\])]{0,60}[\])]:?)+"), ""),  # stamps, ranks and loggers at the start of a line
    (re.compile(r"(?:/[\w.+-]+)+/"), ""),
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"\d+(?:[.:]\d+)*"), "#"),
    (re.compile(r"\s+"), " "),
)


def signature_of(failure: Failure) -> str:
    """Return the rule, the phase and the decisive line of a failure, without what changes between launches."""
    return f"{failure.phase.value} {words_of(failure)}"


def words_of(failure: Failure) -> str:
    """Return the same without the phase: one cause may strike earlier or later, but says the same."""
    return f"{failure.rule} {_constant_part(failure.decisive.text) if failure.decisive else ''}"


@lru_cache(maxsize=4096)
def _constant_part(text: str) -> str:
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text.strip()[:LONGEST]
