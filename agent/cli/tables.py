"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.deadends.dead_end import DeadEnd

if TYPE_CHECKING:
    from rich.table import Table


def dead_end_table(dead_ends: Sequence[DeadEnd]) -> Table:
    """Return the map: what cannot work here, why, and what it rests on."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(title="Dead ends", title_justify="left", box=SIMPLE, pad_edge=False)
    for column in ("id", "what cannot work here", "reason", "state", "seen in", "cure"):
        table.add_column(column, overflow="fold")
    for found in dead_ends:
        table.add_row(found.id, str(found), found.reason.value, found.state.value, " ".join(found.support), found.cure)
    return table
