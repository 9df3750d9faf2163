"""The map as a table: one row for each dead end, before the blocks that say more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.blocks import COLOURS
from agent.deadends.dead_end import DeadEnd, DeadEndState
from agent.progress import spoken
from agent.saved import map_saved_s, times_of
from agent.wishes import read_counts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from agent.reading import Reading

SHOWN = (DeadEndState.CONFIRMED, DeadEndState.STALE)
"""States that are shown unless all are asked for: what blocks, and what is to be checked again."""
ROOMY = 110
"""Columns from which a terminal has room for the trials too; the blocks below the table name them in any case."""
WIDE = 200
"""Columns of a table that goes into a file or a pipe."""


def print_map(reading: Reading, dead_ends: Sequence[DeadEnd], console: Console) -> None:
    """Print the table, and how many dead ends of the other states there are."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    history, ruled_out = reading.history, read_counts(reading.store)
    times = times_of(history)
    table = Table(box=box.SIMPLE, pad_edge=False)
    width = console.width if console.is_terminal else WIDE
    for title in ("id", "what fails", "reason", "state", *(["seen in"] if width >= ROOMY else [])):
        table.add_column(title, no_wrap=title in ("id", "reason", "state"), overflow="fold")
    for title in ("spent", "saved"):
        table.add_column(title, justify="right", no_wrap=True)
    for found in dead_ends:
        saved = map_saved_s(found, ruled_out.get(found.id, {}), times)
        words: tuple[str, ...] = (found.id, str(found), found.reason.value, found.state.value)
        words += (seen_in(found),) if width >= ROOMY else ()
        cells = [Text(word) for word in (*words, spoken(found.seconds), spoken(saved))]
        cells[3].stylize(COLOURS[found.state])
        table.add_row(*cells)
    if dead_ends:
        _print_table(table, console, width)
    left_out = Counter(each.state.value for each in history.atlas.dead_ends if each not in dead_ends)
    if left_out:
        numbers = ", ".join(f"{number} {state}" for state, number in left_out.items())
        console.print(f"not shown: {numbers} (agent deadends --all)", soft_wrap=True)


def _print_table(table: Table, console: Console, width: int) -> None:
    before, console.width = console.width, width
    console.print(table)
    console.width = before


def seen_in(found: DeadEnd, most: int = 4) -> str:
    """Return the labels of the trials that failed like this, the first few, and the study it came from."""
    labels = [*found.support[:most], *([f"and {len(found.support) - most} more"] if len(found.support) > most else [])]
    if found.origin is not None:
        labels.append(f"study {found.origin.study}")
    return " ".join(labels)
