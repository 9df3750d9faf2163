"""Greedy outputs against the baseline's: a configuration that is fast and wrong is a failure.

How far the baseline agrees with itself over two launches sets the tolerance: kernels that add up in another order each
time turn over near ties, and then nobody's output can be asked to be equal.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise, zip_longest

from agent.classify.rule import Rule
from agent.outcome import Failure, OutputCheck
from agent.reasons import REASONS, Reason
from runners import LogLine, Measurement, Phase

MIN_AGREEMENT = 0.99
"""Share of token positions that have to be equal where the baseline equals itself. Not 1.0: a matrix product of another
shape rounds differently, which may turn over a near tie between two tokens."""
DOUBTS = 3.0
"""Standard errors by which a launch may disagree more than the baseline with itself."""
REPEATED = 4
"""Tokens of a request from which on one and the same token throughout is worth a word."""

OUTPUTS_DIFFER = Rule(
    code="W002",
    name="outputs-differ-from-baseline",
    reason=Reason.WRONG_OUTPUT,
    cure="Compare with the same settings and allreduce at its default; a protocol that the links do not carry safely "
    "(NCCL_PROTO=LL128) corrupts data in silence.",
    source="this project 0.1: greedy tokens of the lowest concurrency level against those of the baseline arm",
)
"""Made by comparison and not by a log line, and therefore not among the registry's rules."""

Rows = tuple[tuple[int, ...], ...]


def check_outputs(measurement: Measurement, baselines: Sequence[Measurement]) -> OutputCheck | None:
    """Return how far the outputs agree with those of the baseline's nearest launch, or None without any tokens of it.

    Args:
        measurement: What a launch put out.
        baselines: What launches of the baseline put out; of two or more, the tolerance is their own disagreement.
    """
    known = [baseline.outputs for baseline in baselines if any(baseline.outputs)]
    if not known:
        return None
    nearest = max(known, key=lambda rows: _agreement(measurement.outputs, rows))
    rows = _padded(measurement.outputs, len(nearest))
    return OutputCheck(
        agreement=_agreement(rows, nearest),
        needed=_needed(known),
        first_differences=tuple(_first_difference(*pair) for pair in zip(rows, nearest, strict=True)),
        num_baselines=len(known),
    )


def wrong_output(measurement: Measurement, baselines: Sequence[Measurement]) -> Failure | None:
    """Return a failure when the outputs agree less with the baseline's than its launches with each other, else None.

    None as well when the baseline kept no tokens: nothing can be compared, and nothing is concluded.
    """
    check = check_outputs(measurement, baselines)
    if check is None or check.agreement >= check.needed:
        return None
    text = (
        f"{check.agreement:.1%} of the greedy tokens equal the baseline's, {check.needed:.1%} are needed; "
        f"{_difference(measurement, baselines)}{_garbage(measurement)}"
    )
    return Failure(
        reason=OUTPUTS_DIFFER.reason,
        rule=OUTPUTS_DIFFER.code,
        confidence=1.0,
        phase=Phase.SERVE,
        decisive=LogLine(number=0, text=text),  # 0: found by comparison, stands in no log
        policy=REASONS[OUTPUTS_DIFFER.reason].policy,
        cure=OUTPUTS_DIFFER.cure,
    )


def own_agreement(baselines: Sequence[Measurement]) -> float | None:
    """Return the share of tokens in which launches of the baseline agree, each with the one before; None of one."""
    known = [baseline.outputs for baseline in baselines if any(baseline.outputs)]
    shares = [_agreement(later, earlier) for earlier, later in pairwise(known)]
    return statistics.fmean(shares) if shares else None


def _needed(baselines: Sequence[Rows]) -> float:
    """Return the least agreement: that of the baseline with itself, less what so few requests leave in doubt."""
    if len(baselines) < 2:
        return MIN_AGREEMENT
    own = [_agreement((row,), (wanted,)) for pair in pairwise(baselines) for row, wanted in zip(*pair, strict=False)]
    error = statistics.stdev(own) / math.sqrt(len(own)) if len(own) > 1 else 0.0
    return max(0.0, min(MIN_AGREEMENT, statistics.fmean(own) - DOUBTS * math.sqrt(2.0) * error))


def _agreement(rows: Rows, baseline: Rows) -> float:
    """Return the share of equal positions, 1.0 without any."""
    pairs = [
        token == wanted
        for row, expected in zip(_padded(rows, len(baseline)), baseline, strict=True)
        for token, wanted in zip_longest(row, expected)
    ]
    return sum(pairs) / len(pairs) if pairs else 1.0


def _first_difference(row: Sequence[int], expected: Sequence[int]) -> int | None:
    pairs = enumerate(zip_longest(row, expected), start=1)
    return next((position for position, (token, wanted) in pairs if token != wanted), None)


def _difference(measurement: Measurement, baselines: Sequence[Measurement]) -> str:
    """Return the first difference from the first launch of the baseline in words."""
    expected = next(baseline.outputs for baseline in baselines if any(baseline.outputs))
    for number, (row, wanted) in enumerate(
        zip(_padded(measurement.outputs, len(expected)), expected, strict=True), start=1
    ):
        if (position := _first_difference(row, wanted)) is not None:
            got, instead = (_word(each[position - 1 : position]) for each in (row, wanted))
            return f"first difference: request {number}, token {position}: {got} instead of {instead}"
    return "no difference from its first launch"


def _garbage(measurement: Measurement) -> str:
    """Return a word on requests whose output is one token throughout, as it is when numbers have become NaN."""
    same = sum(len(row) >= REPEATED and len(set(row)) == 1 for row in measurement.outputs)
    return f"; one token throughout in {same} of {len(measurement.outputs)} requests" if same else ""


def _padded(rows: Rows, num_rows: int) -> Rows:
    """The rows to compare: a request that has no row gave no tokens at all."""
    return (rows + ((),) * num_rows)[:num_rows]


def _word(token: Sequence[int]) -> str:
    return str(token[0]) if token else "nothing"
