"""Reading out of a server's log what really runs, and setting it against what was asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from runners.contract import EffectProof, LogLine
from search_spaces import Assignment, Scalar

LEFT_ALONE = ("auto", "default", "same")
"""Values that ask for nothing, so that there is nothing to prove."""
MAX_EVIDENCE_CHARS = 240
NO_LINE = 0
"""Number of evidence that stands in no log."""
MAX_LINES = 20_000
"""An engine says what it resolved while it starts; what it logs under load is not searched for that."""

NCCL_PARAMETERS = (
    "nccl_algo",
    "nccl_proto",
    "nccl_max_ctas",
    "nccl_min_ctas",
    "nccl_p2p_level",
    "nccl_buffsize",
    "nccl_cumem_enable",
    "nccl_graph_register",
)
NCCL_PATTERNS = {name: rf"NCCL INFO {name.upper()} set by environment to (.*?)\.?$" for name in NCCL_PARAMETERS}
"""What NCCL says of each of its variables. Source: NCCL 2.18 to 2.30, param.cc, graph/tuning.cc, init.cc."""
NCCL_DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "ENV"}
"""Makes NCCL say so, and little else."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a line of the log says about one thing."""

    value: Scalar
    line: LogLine
    position: int = 0
    """Where in the line it says so."""

    def as_(self, value: Scalar) -> Found:
        """Return the same evidence for another value."""
        return Found(value, self.line, self.position)


Check = Callable[[Scalar], Found | None]
"""Requested value → what took effect; None where the log does not tell."""


def proofs(assignment: Assignment, checks: Mapping[str, Check]) -> Iterator[EffectProof]:
    """Yield a proof for each parameter that asks for something and that the log tells about."""
    for name, requested in assignment.items():
        if name not in checks or requested in LEFT_ALONE:
            continue
        found = checks[name](requested)
        if found is not None:
            said = _around(found.line.text, found.position)
            evidence = said if found.line.number == NO_LINE else f"line {found.line.number}: {said}"
            yield EffectProof(parameter=name, requested=requested, effective=found.value, evidence=evidence)


def first_matches(lines: Iterable[LogLine], patterns: Mapping[str, str]) -> dict[str, tuple[LogLine, re.Match[str]]]:
    """Return the first match of each pattern, by its name, in one pass over the log."""
    left = {name: re.compile(pattern) for name, pattern in patterns.items()}
    found: dict[str, tuple[LogLine, re.Match[str]]] = {}
    for line in islice(lines, MAX_LINES):
        for name, pattern in list(left.items()):
            if (match := pattern.search(line.text)) is not None:
                found[name] = (line, match)
                del left[name]
        if not left:
            break
    return found


def nccl_checks(found: Mapping[str, tuple[LogLine, re.Match[str]]]) -> dict[str, Check]:
    """Return the checks of NCCL's variables, for what `NCCL_PATTERNS` found."""
    return {name: _nccl_check(*found[name]) for name in NCCL_PARAMETERS if name in found}


def _nccl_check(line: LogLine, match: re.Match[str]) -> Check:
    return lambda _: Found(scalar(match[1]), line, match.start())


def literal(text: str) -> object:
    """Return the Python literal that a log shows, or the text itself where it is none."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value


def scalar(text: str) -> Scalar:
    """Return a number, truth value or text as a log shows it; None is `none`."""
    value = literal(text)
    return value if isinstance(value, bool | int | float | str) else str(value).lower()


def _around(text: str, position: int) -> str:
    start = max(0, position - MAX_EVIDENCE_CHARS // 2) if len(text) > MAX_EVIDENCE_CHARS else 0
    return text[start : start + MAX_EVIDENCE_CHARS]
