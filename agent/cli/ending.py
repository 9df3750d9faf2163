"""The first and the last screen of a search: what will be done, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli.tables import dead_end_table
from agent.errors import INTERRUPTED_EXIT_CODE, NothingWorksError, StorageError
from agent.home import Home
from agent.mirror.tracking import default_artifact_root, default_tracking_uri, ui_command
from agent.reasons import Reason
from agent.report import headline, reproduce_command
from agent.session import Ended
from agent.store.manifest import Manifest
from agent.studies import Plan
from agent.summary import summarise
from runners.node_facts import summary_lines

if TYPE_CHECKING:
    from rich.console import Console


def print_plan(plan: Plan, console: Console) -> None:
    """Print the node's facts and what will be searched, in a few lines."""
    settings, space, facts = plan.manifest.settings, plan.manifest.space, plan.manifest.facts
    for line in summary_lines(facts):
        console.print(line, soft_wrap=True)
    free = {name: len(parameter.domain) for name, parameter in space.parameters.items() if len(parameter.domain) > 1}
    points = 1
    for number in free.values():
        points *= number
    levels = ", ".join(map(str, settings.workload.concurrency))
    console.print(
        f"engine {settings.engine.engine} on {settings.engine.num_ranks} {settings.engine.device} ranks; "
        f"{len(free)} parameters, {points:,} points; {plan.spec.budget} launches at concurrency {levels}",
        soft_wrap=True,
    )
    console.print("searching: " + ", ".join(f"{name} ({number})" for name, number in free.items()), soft_wrap=True)


def finish(ended: Ended, manifest: Manifest, tracking_uri: str, home: Home, console: Console) -> int:
    """Print how the search ended and return the command's exit code."""
    summary = summarise(ended.history, manifest.settings.name)
    console.print()
    console.print(f"{manifest.settings.name}: {ended.stop.why}", style="bold", soft_wrap=True)
    for line in headline(summary):
        console.print(f"  {line}", soft_wrap=True)
    if summary.atlas.dead_ends:
        console.print(dead_end_table(summary.atlas.dead_ends))
    if summary.best is not None:
        console.print("\nrepeat the best with:", style="bold")
        console.print(f"  {reproduce_command(ended.history.runner, summary.best.first, manifest)}", soft_wrap=True)
    _print_mirror(ended, tracking_uri, home, console)
    return _exit_code(ended, manifest, console)


def _print_mirror(ended: Ended, tracking_uri: str, home: Home, console: Console) -> None:
    if not ended.is_mirrored:
        return
    is_default = tracking_uri == default_tracking_uri(home.path)
    command = ui_command(tracking_uri, ended.experiment_id, default_artifact_root(home.path) if is_default else None)
    console.print("\nsee every trial in MLflow:", style="bold")
    console.print(f"  {command}", soft_wrap=True)


def _exit_code(ended: Ended, manifest: Manifest, console: Console) -> int:
    if ended.stop.nothing_works:
        return NothingWorksError.exit_code
    if not ended.stop.resumable:
        return 0
    console.print(f"\ngo on with: agent resume {manifest.settings.name}", style="bold")
    if ended.stop.why.startswith(Reason.DISK_FULL.value):
        return StorageError.exit_code
    return 0 if "time budget" in ended.stop.why else INTERRUPTED_EXIT_CODE
