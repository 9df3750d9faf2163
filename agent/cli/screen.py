"""The console all commands print to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def make_console() -> Console:
    """Return a console: coloured and alive on a terminal, plain text elsewhere."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)
