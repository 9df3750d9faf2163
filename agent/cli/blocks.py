"""Dead ends on the terminal: a short block each, which stays readable in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.screen import print_indented
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.deadends.documents import scope_words

if TYPE_CHECKING:
    from rich.console import Console

INDENT = 4
COLOURS = {
    DeadEndState.CONFIRMED: "red",
    DeadEndState.SUSPECTED: "yellow",
    DeadEndState.FLAKY: "magenta",
    DeadEndState.REFUTED: "green",
    DeadEndState.STALE: "cyan",
}
MOST_LABELS = 6
"""Trials named on a line; the JSON has all."""


def print_dead_ends(dead_ends: Sequence[DeadEnd], console: Console) -> None:
    """Print the map: what cannot work here, why, where it was seen, the line that tells, and the cure."""
    from rich.text import Text

    for found in dead_ends:
        state = (found.state.value, COLOURS[found.state])
        console.print()
        head = Text.assemble((found.id, "bold"), "  ", state, "  ", (str(found), "bold"))
        console.print(head, soft_wrap=not console.is_terminal)
        for line in _details(found):
            print_indented(console, line, INDENT)


def _details(found: DeadEnd) -> list[str]:
    where = f", seen in {_labels(found.support)}" if found.support else ""
    but = f"; yet passed in {_labels(found.contradicting)}" if found.contradicting else ""
    details = [found.reason.value + where + but, found.decisive.strip(), f"cure: {found.cure}" if found.cure else ""]
    if found.origin is not None:
        details.append(f"inherited from study {found.origin}")
    if found.state is DeadEndState.STALE:
        details.append(f"not checked here yet: one of {', '.join(found.depends_on)} is another one than there")
    if found.does_not_matter:
        details.append(f"does not matter: {', '.join(found.does_not_matter)}")
    details += [f"instead: {escape}" for escape in found.escapes]
    if found.scope:
        details.append(f"depends on: {scope_words(found)}")
    return [line for line in details if line]


def _labels(labels: Sequence[str]) -> str:
    more = len(labels) - MOST_LABELS
    return " ".join(labels[:MOST_LABELS]) + (f" and {more} more" if more > 0 else "")
