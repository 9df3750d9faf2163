"""The last screen of a search: what was found."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from agent.campaign import PAUSED_BY_THE_USER
from agent.cli.blocks import print_dead_ends
from agent.cli.schedule import print_schedule
from agent.cli.screen import print_command, print_indented
from agent.errors import INTERRUPTED_EXIT_CODE, NodeUnusableError, NothingWorksError, StorageError
from agent.home import Home
from agent.mirror.tracking import default_tracking_uri, ui_command
from agent.reasons import Reason
from agent.report import headline, reproduce_command
from agent.schedule_report import schedule_commands
from agent.session import Ended
from agent.store.manifest import Manifest
from agent.summary import summarise

if TYPE_CHECKING:
    from rich.console import Console


def finish(ended: Ended, manifest: Manifest, tracking_uri: str, home: Home, console: Console) -> int:
    """Print how the search ended and return the command's exit code."""
    summary = summarise(ended.history, manifest.settings.name, ended.ruled_out)
    if summary.atlas.dead_ends:  # before the answer, which is to stand where the reader is when it is over
        console.print("\ndead ends:", style="bold")
        print_dead_ends(summary.atlas.dead_ends, console)
    console.print()
    console.print(f"{manifest.settings.name}: {ended.stop.why}", style="bold", soft_wrap=True)
    for line in headline(summary):
        print_indented(console, line)
    if summary.best is not None:
        line = reproduce_command(ended.history.runner, summary.best.first, manifest)
        print_command(console, "repeat the best with:", line)
    if summary.schedule is not None and not summary.modelled:
        print_schedule(schedule_commands(summary.schedule, ended.history.runner, manifest), console)
    _print_mirror(ended, tracking_uri, home, console)
    return _exit_code(ended, manifest, home, console)


def _print_mirror(ended: Ended, tracking_uri: str, home: Home, console: Console) -> None:
    if not ended.is_mirrored:
        return
    command = ui_command(tracking_uri, ended.experiment_id)
    if tracking_uri == default_tracking_uri(home.path):
        command = shlex.join(["agent", "ui", ended.manifest.settings.name, *home.words()])
    print_command(console, "see every trial in MLflow:", command)


def _exit_code(ended: Ended, manifest: Manifest, home: Home, console: Console) -> int:
    if ended.stop.nothing_works:
        return NothingWorksError.exit_code
    if not ended.stop.resumable:
        return 0
    console.print(f"\ngo on with: {home.resume(manifest.settings.name)}", style="bold", soft_wrap=True)
    if ended.stop.node_unusable:
        return NodeUnusableError.exit_code
    if ended.stop.storage_failed or ended.stop.why.startswith(Reason.DISK_FULL.value):
        return StorageError.exit_code
    is_as_asked = ended.stop.why == PAUSED_BY_THE_USER or "time budget" in ended.stop.why
    return 0 if is_as_asked else INTERRUPTED_EXIT_CODE
