"""What one pass over a log finds: the lines that match a rule, and the telling lines that match none."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from agent.classify.lines import BENIGN, TELLING
from agent.classify.log_stream import StreamLine
from agent.classify.matcher import PatternSet, find
from agent.classify.rule import Priority, Rule
from runners import LogLine

MAX_TEXT_CHARS = 500
MAX_HITS_PER_RULE = 6
"""The decisive line and up to five supporting ones; the rest of a flood says nothing new."""
_LEAD_CHARS = 200
"""How much of an overlong line is shown before the message itself."""
_MAX_TELLING = 3
_LAST_LINES = 3


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
    """At most MAX_HITS_PER_RULE a rule, in line order."""
    telling: tuple[LogLine, ...] = ()
    """The most telling lines that a reader would look at first, best first."""


class LogScanner:
    """The rules' patterns, prepared for reading logs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._pairs = [(rule, pattern) for rule in rules for pattern in rule.any_of]
        self._first_telling = len(self._pairs)
        self._first_benign = self._first_telling + len(TELLING)
        patterns = chain((pattern for _, pattern in self._pairs), TELLING, BENIGN)
        self._set = PatternSet(tuple(patterns))

    def scan(self, lines: Iterable[StreamLine]) -> LogEvidence:
        """Read the lines once and keep what is evidence."""
        hits: dict[str, list[Hit]] = defaultdict(list)
        telling: list[list[LogLine]] = [[] for _ in TELLING]
        last: deque[StreamLine] = deque(maxlen=_LAST_LINES)
        for line in lines:
            last.append(line)
            found = self._set.matches(line.content)
            if not found or found[-1] >= self._first_benign:
                continue
            self._note_hits(hits, line, found)
            self._note_telling(telling, line, found)
        ends = [_shown(line) for line in reversed(last)]
        in_order = sorted(chain.from_iterable(hits.values()), key=lambda hit: hit.number)
        return LogEvidence(tuple(in_order), tuple(_distinct(chain(*telling, ends))))

    def _note_hits(self, hits: dict[str, list[Hit]], line: StreamLine, found: Sequence[int]) -> None:
        pairs = [self._pairs[index] for index in found if index < self._first_telling]
        is_known = any(rule.priority is not Priority.BARE for rule, _ in pairs)
        for rule, pattern in pairs:
            if is_known and rule.priority is Priority.BARE:
                continue
            if len(hits[rule.code]) < MAX_HITS_PER_RULE and not _is_excluded(rule, line, hits[rule.code]):
                start, groups = find(pattern, line.content) or (0, {})
                hits[rule.code].append(Hit(rule, _shown(line, start), groups))

    def _note_telling(self, telling: list[list[LogLine]], line: StreamLine, found: Sequence[int]) -> None:
        grades = [index - self._first_telling for index in found if index >= self._first_telling]
        if grades and len(telling[grades[0]]) < _MAX_TELLING:
            telling[grades[0]].append(_shown(line))


def _is_excluded(rule: Rule, line: StreamLine, earlier: Sequence[Hit]) -> bool:
    """True when the line is no evidence, or is the line (or a piece of it) that already is."""
    is_same_line = bool(earlier) and earlier[-1].number == line.number
    return is_same_line or any(find(pattern, line.content) for pattern in rule.none_of)


def _shown(line: StreamLine, match_start: int = 0) -> LogLine:
    """The line as a reader gets it: cut to MAX_TEXT_CHARS, with the matching part inside."""
    is_too_far = match_start > MAX_TEXT_CHARS - _LEAD_CHARS
    start = match_start - _LEAD_CHARS if is_too_far else 0
    # Four bytes make a character at most, so that this never cuts a text shorter than it has to be.
    text = line.content[start : start + 4 * MAX_TEXT_CHARS].decode("utf-8", errors="replace")
    return LogLine(number=line.number, text=text[:MAX_TEXT_CHARS])


def _distinct(lines: Iterable[LogLine]) -> Iterable[LogLine]:
    """The lines in their order, each number once."""
    by_number: dict[int, LogLine] = {}
    for line in lines:
        by_number.setdefault(line.number, line)
    return by_number.values()
