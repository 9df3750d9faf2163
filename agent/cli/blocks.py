"""Dead ends on the terminal: a short block each, which stays readable in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.screen import print_indented
from agent.deadends.dead_end import DeadEnd, DeadEndState

if TYPE_CHECKING:
    from rich.console import Console

INDENT = 4
_COLOURS = {DeadEndState.CONFIRMED: "red", DeadEndState.SUSPECTED: "yellow", DeadEndState.FLAKY: "magenta"}


def print_dead_ends(dead_ends: Sequence[DeadEnd], console: Console) -> None:
    """Print the map: what cannot work here, why, where it was seen, the line that tells, and the cure."""
    from rich.text import Text

    for found in dead_ends:
        state = (found.state.value, _COLOURS[found.state])
        console.print()
        head = Text.assemble((found.id, "bold"), "  ", state, "  ", (str(found), "bold"))
        console.print(head, soft_wrap=not console.is_terminal)
        for line in _details(found):
            print_indented(console, line, INDENT)


def _details(found: DeadEnd) -> list[str]:
    seen = f"{found.reason.value}, seen in {' '.join(found.support)}"
    but = f"; yet passed in {' '.join(found.contradicting)}" if found.contradicting else ""
    details = [seen + but, found.decisive.strip(), f"cure: {found.cure}" if found.cure else ""]
    if found.does_not_matter:
        details.append(f"does not matter: {', '.join(found.does_not_matter)}")
    return [line for line in details if line]
