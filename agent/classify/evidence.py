"""What a log shows: the lines that match a rule, how far the launch came, and the lines worth a look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.classify.log_stream import StreamLine
from agent.classify.rule import Rule
from runners import LogLine, Phase

MAX_TEXT_CHARS = 500
_LEAD_CHARS = 200
"""How much of an overlong line is shown before the message itself."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches a rule. Exit rules match without a line."""

    rule: Rule
    line: LogLine | None = None
    groups: Mapping[str, str] | None = None

    @property
    def number(self) -> int:
        """Line number, or 0 where the rule needs no line."""
        return self.line.number if self.line else 0


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """Everything a classification needs from a log, in bounded space."""

    hits: tuple[Hit, ...] = ()
    """A few for each rule, in line order."""
    survived: tuple[Hit, ...] = ()
    """Hits above the line in which the launch said that it was ready."""
    telling: tuple[LogLine, ...] = ()
    """The most telling lines that a reader would look at first, best first."""
    phase: Phase | None = None
    """The furthest phase that the log shows, or None where it shows none."""
    phase_line: LogLine | None = None
    """The last line that showed a new phase."""
    last_line: LogLine | None = None
    is_ready: bool = False
    is_stop_asked: bool = False


def shown(line: StreamLine, match_start: int = 0) -> LogLine:
    """Return the line as a reader gets it: cut to MAX_TEXT_CHARS, with the matching part inside."""
    is_too_far = match_start > MAX_TEXT_CHARS - _LEAD_CHARS
    start = match_start - _LEAD_CHARS if is_too_far else 0
    # Four bytes make a character at most, so that this never cuts a text shorter than it has to be.
    text = line.content[start : start + 4 * MAX_TEXT_CHARS].decode("utf-8", errors="replace")
    return LogLine(number=line.number, text=text[:MAX_TEXT_CHARS])
