"""One pass over a log: blocks in which nothing new stands are skipped whole, the others are looked at line by line."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from agent.classify.collector import Collector, Indices
from agent.classify.evidence import LogEvidence, shown
from agent.classify.lines import BENIGN, PHASES, READY, STOP_ASKED, TELLING
from agent.classify.log_stream import Block, StreamLine
from agent.classify.matcher import PatternSet
from agent.classify.rule import Rule
from runners import LogLine

MAX_ABOVE_LINES = 120
"""How far above a line its traceback may begin."""
_ABOVE_BYTES = 16 * 1024
_LAST_LINES = 3


class LogScanner:
    """The rules' patterns, prepared for reading logs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._pairs = tuple((rule, pattern) for rule in rules for pattern in rule.any_of)
        parts = (
            tuple(pattern for _, pattern in self._pairs),
            TELLING,
            tuple(pattern for pattern, _ in PHASES),
            READY,
            STOP_ASKED,
            BENIGN,
        )
        self._indices = Indices.of_parts([len(part) for part in parts])
        self._set = PatternSet(tuple(chain(*parts)))

    def scan(self, blocks: Iterable[Block]) -> LogEvidence:
        """Read the blocks once and keep what is evidence."""
        collector = Collector(self._pairs, self._indices)
        tail = _Tail()
        for block in blocks:
            if collector.wants(self._set.matches(block.searchable)):
                for part in block.parts():
                    if collector.wants(self._set.matches(part.searchable)):
                        self._take_apart(part, tail.text, collector)
                    tail.add(part)
            else:
                tail.add(block)
        return collector.evidence(tail.last_lines())

    def _take_apart(self, block: Block, text_above: bytes, collector: Collector) -> None:
        above: deque[bytes] = deque(text_above[-_ABOVE_BYTES:].split(b"\n"), maxlen=MAX_ABOVE_LINES)
        for line in block.lines():
            collector.look(line, self._set.matches(line.content), above)
            above.append(line.content)


@dataclass(slots=True)
class _Tail:
    """The end of what was read so far."""

    number: int = 1
    """Number of the line with which the text begins."""
    text: bytes = b""

    def add(self, block: Block) -> None:
        is_new_line = not self.text or self.text.endswith(b"\n")
        if len(block.text) >= _ABOVE_BYTES or not is_new_line:
            kept, number = block.text, block.number
        else:
            kept, number = self.text + block.text, self.number
        cut = max(0, len(kept) - 2 * _ABOVE_BYTES)
        self.text, self.number = kept[cut:], number + kept.count(b"\n", 0, cut)

    def last_lines(self) -> list[LogLine]:
        """Return the last lines, the last first."""
        lines: deque[StreamLine] = deque(Block(self.number, self.text).lines(), maxlen=_LAST_LINES)
        return [shown(line) for line in reversed(lines)]
