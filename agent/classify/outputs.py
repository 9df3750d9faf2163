"""Greedy outputs against the baseline's: a configuration that is fast and wrong is a failure."""

from __future__ import annotations

from itertools import zip_longest

from agent.classify.rule import Rule
from agent.outcome import Failure
from agent.reasons import REASONS, Reason
from runners import LogLine, Measurement, Phase

MIN_AGREEMENT = 0.99
"""Share of token positions that have to be equal. Not 1.0: a matrix product of another shape rounds differently,
which may turn over a near tie between two tokens."""

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


def wrong_output(measurement: Measurement, baseline: Measurement) -> Failure | None:
    """Return a failure when less than MIN_AGREEMENT of the baseline's greedy tokens are reproduced, else None.

    None as well when the baseline kept no tokens: nothing can be compared, and nothing is concluded.
    """
    agreement, difference = _compare(measurement.outputs, baseline.outputs)
    if agreement >= MIN_AGREEMENT:
        return None
    text = f"{agreement:.1%} of the greedy tokens equal the baseline's; first difference: {difference}"
    return Failure(
        reason=OUTPUTS_DIFFER.reason,
        rule=OUTPUTS_DIFFER.code,
        confidence=1.0,
        phase=Phase.SERVE,
        decisive=LogLine(number=0, text=text),  # 0: found by comparison, stands in no log
        policy=REASONS[OUTPUTS_DIFFER.reason].policy,
        cure=OUTPUTS_DIFFER.cure,
    )


def _compare(rows: Rows, baseline: Rows) -> tuple[float, str]:
    """Return the share of equal positions (1.0 without any) and the first difference in words."""
    num_equal = num_positions = 0
    first = ""
    for row_number, (row, expected) in enumerate(zip(_padded(rows, len(baseline)), baseline, strict=True), start=1):
        for position, (token, wanted) in enumerate(zip_longest(row, expected), start=1):
            num_positions += 1
            num_equal += token == wanted
            if token != wanted:
                first = first or f"request {row_number}, token {position}: {_word(token)} instead of {_word(wanted)}"
    return (num_equal / num_positions if num_positions else 1.0), first


def _padded(rows: Rows, num_rows: int) -> Rows:
    """The rows to compare: a request that has no row gave no tokens at all."""
    return (rows + ((),) * num_rows)[:num_rows]


def _word(token: int | None) -> str:
    return "nothing" if token is None else str(token)
