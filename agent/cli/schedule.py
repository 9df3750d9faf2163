"""The commands of a schedule on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli.screen import print_command, print_indented
from agent.schedule_report import ScheduleCommands

if TYPE_CHECKING:
    from rich.console import Console


def print_schedule(commands: ScheduleCommands, console: Console) -> None:
    """Print the one command for all concurrencies, or else one for each; nothing where all of them are the same."""
    if len(set(commands.by_concurrency.values())) < 2:
        return
    if commands.whole:
        print_command(console, "each concurrency its own draft length:", commands.whole)
        for name, text in commands.files.items():
            console.print(f"\nwith the file {name}:")
            for line in text.splitlines():
                print_indented(console, line)
        return
    console.print()
    print_indented(console, f"no single command drafts another length at each concurrency: {commands.why_none}", 0)
    for concurrency, command in commands.by_concurrency.items():
        print_command(console, f"for concurrency {concurrency}:", command)
