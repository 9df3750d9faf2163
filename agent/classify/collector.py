"""What was found so far in one log, line by line, in bounded space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from agent.classify.evidence import Hit, LogEvidence, shown
from agent.classify.lines import PHASES, TELLING
from agent.classify.log_stream import StreamLine
from agent.classify.matcher import find
from agent.classify.rule import Priority, Rule
from runners import LogLine, Phase

MAX_HITS_PER_RULE = 6
"""The decisive line and up to five supporting ones; the rest of a flood says nothing new."""
_MAX_TRIES = 50
"""How often a rule's line is looked at in vain before the rule is taken not to hold in this log."""
_MAX_BENIGN = 300
"""How often a pattern may stand in harmless lines before it is taken to say nothing in this log."""
_MAX_STARTS = 20
"""How often a launch may become ready in one log before the lines above are no longer set aside."""
_MAX_TELLING = 3
_RANK = {phase: rank for rank, phase in enumerate(Phase)}
_FRAME = rb'File "'


@dataclass(frozen=True, slots=True)
class Indices:
    """Where each kind of pattern ends in the set of all patterns."""

    rules: int
    telling: int
    phases: int
    ready: int
    stop: int
    benign: int

    @classmethod
    def of_parts(cls, sizes: Sequence[int]) -> Indices:
        """Return the ends of parts that follow each other."""
        return cls(*accumulate(sizes))


class Collector:
    """Keeps what counts of one log, and knows which patterns have nothing new to say."""

    def __init__(self, pairs: Sequence[tuple[Rule, str]], indices: Indices) -> None:
        self._pairs = pairs
        self._ends = indices
        self._done: set[int] = set()
        self._hits: dict[str, list[Hit]] = {}
        self._survived: dict[str, list[Hit]] = {}
        self._num_tries: dict[int, int] = {}
        self._num_benign: dict[int, int] = {}
        self._telling: list[list[LogLine]] = [[] for _ in TELLING]
        self._phase: Phase | None = None
        self._phase_line: LogLine | None = None
        self._num_starts = 0
        self._is_stop_asked = False
        self._asked_in_line = 0

    def wants(self, found: Iterable[int]) -> bool:
        """Return whether a text in which these patterns were found may hold something new."""
        return any(index < self._ends.stop and index not in self._done for index in found)

    def look(self, line: StreamLine, found: Sequence[int], above: Sequence[bytes]) -> None:
        """Take in a line, in which the patterns `found` match, and which stands below the lines `above`."""
        if not found:
            return
        ends = self._ends
        others = [index for index in found if ends.telling <= index < ends.stop]
        if others:
            self._note_progress(line, others)
        is_benign = found[-1] >= ends.stop
        self._note_hits(line, [index for index in found if index < ends.rules and self._reads(index, is_benign)], above)
        if is_benign:
            self._give_up_on(index for index in found if index < ends.telling)
        else:
            self._note_telling(line, [index for index in found if ends.rules <= index < ends.telling])

    def evidence(self, last_lines: Sequence[LogLine]) -> LogEvidence:
        """Return what the log shows.

        Args:
            last_lines: The last lines of the log, the last first.
        """
        return LogEvidence(
            hits=_in_order(self._hits),
            survived=_in_order(self._survived),
            telling=_distinct(chain(*self._telling, last_lines)),
            phase=self._phase,
            phase_line=self._phase_line,
            last_line=last_lines[0] if last_lines else None,
            is_ready=self._num_starts > 0,
            is_stop_asked=self._is_stop_asked,
        )

    def _note_progress(self, line: StreamLine, found: Sequence[int]) -> None:
        for index in found:
            if index < self._ends.phases:
                self._done.add(index)
                self._enter(PHASES[index - self._ends.telling][1], line)
            elif index < self._ends.ready:
                self._note_start(index)
            else:
                self._is_stop_asked, self._asked_in_line = True, line.number
                self._done.add(index)

    def _enter(self, phase: Phase, line: StreamLine) -> None:
        if self._phase is None or _RANK[phase] > _RANK[self._phase]:
            self._phase = phase
        self._phase_line = shown(line)

    def _note_start(self, index: int) -> None:
        """What stands above a line that says "ready" did not stop the launch."""
        self._num_starts += 1
        if self._num_starts > _MAX_STARTS:
            self._done.add(index)
            return
        self._survived |= self._hits
        self._hits, self._num_tries, self._is_stop_asked = {}, {}, False
        self._done = {done for done in self._done if self._ends.rules <= done < self._ends.ready}

    def _note_hits(self, line: StreamLine, found: Sequence[int], above: Sequence[bytes]) -> None:
        pairs = [(self._pairs[index], index) for index in found if index not in self._done]
        accepted = [(pair, index) for pair, index in pairs if self._holds(pair[0], index, line, above)]
        is_known = any(_is_final(rule) for (rule, _), _ in accepted)
        for (rule, pattern), index in accepted:
            if rule.is_catch_all and is_known:
                self._count_try(index)
                continue
            hits = self._hits.setdefault(rule.code, [])
            if hits and hits[-1].number == line.number:
                continue
            start, groups = find(pattern, line.content) or (0, {})
            hits.append(Hit(rule, shown(line, start), groups))
            if len(hits) == MAX_HITS_PER_RULE:
                self._done.add(index)

    def _holds(self, rule: Rule, index: int, line: StreamLine, above: Sequence[bytes]) -> bool:
        is_later = self._is_stop_asked and line.number > self._asked_in_line
        if is_later and rule.priority <= Priority.WRAPPER:
            self._done.add(index)
            return False
        if len(self._hits.get(rule.code, ())) >= MAX_HITS_PER_RULE:
            self._done.add(index)
            return False
        is_held = not any(find(pattern, line.content) for pattern in rule.none_of) and _fits(rule, above)
        if not is_held:
            self._count_try(index)
        return is_held

    def _count_try(self, index: int) -> None:
        self._num_tries[index] = self._num_tries.get(index, 0) + 1
        if self._num_tries[index] >= _MAX_TRIES:
            self._done.add(index)

    def _give_up_on(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._num_benign[index] = self._num_benign.get(index, 0) + 1
            if self._num_benign[index] >= _MAX_BENIGN:
                self._done.add(index)

    def _reads(self, index: int, is_benign: bool) -> bool:
        return not is_benign or self._pairs[index][0].reads_benign

    def _note_telling(self, line: StreamLine, found: Sequence[int]) -> None:
        for index in found[:1]:
            kept = self._telling[index - self._ends.rules]
            if len(kept) < _MAX_TELLING:
                kept.append(shown(line))
            else:
                self._done.add(index)


def _is_final(rule: Rule) -> bool:
    """True for a rule that explains its line whatever the rest of the evidence is."""
    return not rule.is_catch_all and not rule.phases and rule.exit_facts is None


def _fits(rule: Rule, above: Sequence[bytes]) -> bool:
    """True when the text above the line is what the rule asks for."""
    if rule.frame and not _matches(rule.frame, next((text for text in reversed(above) if _FRAME in text), b"")):
        return False
    return not rule.above or _matches(rule.above, b"\n".join(above))


def _matches(patterns: Sequence[str], text: bytes) -> bool:
    return any(find(pattern, text) for pattern in patterns)


def _in_order(hits: dict[str, list[Hit]]) -> tuple[Hit, ...]:
    return tuple(sorted(chain.from_iterable(hits.values()), key=lambda hit: hit.number))


def _distinct(lines: Iterable[LogLine]) -> tuple[LogLine, ...]:
    """The lines in their order, each number once."""
    by_number: dict[int, LogLine] = {}
    for line in lines:
        by_number.setdefault(line.number, line)
    return tuple(by_number.values())
