"""The console all commands print to."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def make_console(*, outlives_reader: bool = False) -> Console:
    """Return a console: coloured and alive on a terminal, plain text elsewhere and where NO_COLOR is set.

    Args:
        outlives_reader: Whether the command goes on when its terminal is closed or its reader has ended.
    """
    from rich.console import Console

    from agent.cli.outlet import Outlet

    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"  # rich itself would keep bold
    file = cast("IO[str]", Outlet(sys.stdout)) if outlives_reader else None
    return Console(file=file, highlight=False, markup=False, emoji=False, color_system=colours)


def print_indented(console: Console, text: str, indent: int = 2) -> None:
    """Print a sentence: on a terminal wrapped at words within the indentation; in a file one line stays one line."""
    from rich.padding import Padding

    line: RenderableType = Padding(text, (0, 0, 0, indent)) if console.is_terminal else " " * indent + text
    console.print(line, soft_wrap=not console.is_terminal)


def print_command(console: Console, title: str, command: str) -> None:
    """Print something to be copied: never wrapped, so that it is copied in one piece."""
    console.print(f"\n{title}", style="bold")
    console.print(f"  {command}", soft_wrap=True)
