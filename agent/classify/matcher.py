"""All patterns at once, in time linear in the text: the only module that imports RE2.

RE2 has no backtracking, so no pattern can be slow on any input; the price is that it knows no look-around and no
back-references, which a rule expresses with `none_of` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import re2

_SET_MEMORY_BYTES = 128 << 20
"""Upper bound for the automaton's states; a set that hits its bound would find nothing, so it is generous."""


def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # logs hold any bytes: match bytes, decode only what is shown
    options.log_errors = False
    return options


class PatternSet:
    """Patterns that are searched together in one pass over a text of one or more lines."""

    def __init__(self, patterns: Sequence[str]) -> None:
        options = _options()
        options.max_mem = _SET_MEMORY_BYTES
        self._set = re2.Set.SearchSet(options)
        for pattern in patterns:
            self._set.Add(b"(?m:" + pattern.encode("utf-8") + b")")
        self._set.Compile()

    def matches(self, text: bytes) -> list[int]:
        """Return the indices of the patterns found anywhere in the text, in ascending order."""
        return sorted(self._set.Match(text) or ())


@cache
def _compiled(pattern: str) -> re2._Regexp:
    return re2.compile(pattern.encode("utf-8"), _options())


MAX_PROGRAM_SIZE = 1500
"""Steps of a pattern's automaton: RE2 does at most size * length work, whatever the text."""


def pattern_problem(pattern: str) -> str | None:
    """Return what is wrong with a pattern in words, or None."""
    try:
        compiled = re2.compile(pattern.encode("utf-8"), _options())
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be compiled"
        return reason.decode("utf-8", errors="replace") if isinstance(reason, bytes) else str(reason)
    if compiled.search(b"") is not None:
        return "it matches an empty line, and so every line"
    if compiled.programsize > MAX_PROGRAM_SIZE:
        return f"it is too large ({compiled.programsize} steps, at most {MAX_PROGRAM_SIZE}); split it"
    return None


def find(pattern: str, text: bytes) -> tuple[int, dict[str, str]] | None:
    """Return where the pattern first matches in the text, with its named groups, or None."""
    match = _compiled(pattern).search(text)
    if match is None:
        return None
    groups = {_decode(name): _decode(value) for name, value in match.groupdict().items() if value is not None}
    return match.start(), groups


def _decode(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode("utf-8", errors="replace")
