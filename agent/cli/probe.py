"""`agent probe`: every collective that this node offers, timed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from agent.cli.options import home_option, json_option
from agent.cli.search import exclude_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from agent.node_probe import Probed
    from agent.probe_table import Row

BEGAN = time.monotonic()
FILE_WIDTH = 240
"""Columns of the table where it does not go to a terminal: no line is wrapped."""
MOST_NAMES = 6
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


def _sizes(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    found = []
    for part in (text or "").replace(" ", "").lower().split(",") if text else ():
        number, unit = (
            part.removesuffix("b").rstrip("ikm"),
            part.removesuffix("b").lstrip("0123456789").removesuffix("i"),
        )
        if not number.isdigit() or unit not in UNITS or int(number) == 0:
            raise click.BadParameter(f"{part!r} is not a size in bytes such as 14336, 64K or 1M")
        found.append(int(number) * UNITS[unit])
    return tuple(sorted(set(found)))


@click.command(epilog="Example: agent probe --engine sglang --model ~/models/big")
@click.option("--engine", help="sglang, vllm or torch.  [default: torch]")
@click.option("--engine-python", metavar="PATH", help="Python (or folder) of the environment that holds the server.")
@click.option("--model", metavar="MODEL", help="Model of a server: its sizes decide the messages.")
@click.option("--draft", metavar="MODEL", help="Draft model of a server.")
@click.option("--tp", type=int, help="Ranks.  [default: every GPU; 2 without a GPU]")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), help="Where the ranks run.  [default: GPUs if any]")
@click.option("--sizes", callback=_sizes, metavar="N,N…", help="Message sizes, as 64K,1M.  [default: the model's]")
@exclude_option
@click.option("--time-budget", default="120s", metavar="TIME", help="Longest time.  [default: 120s]")
@json_option
@home_option
@click.pass_context
def command(
    context: click.Context,
    /,
    sizes: tuple[int, ...],
    time_budget: str,
    as_json: bool,
    home: str | None,
    **given: Any,
) -> None:
    """Say what this node offers: every collective with every NCCL algorithm and protocol, timed and checked.

    The probes are stored as a study of their own, whose dead ends later searches start from. NVLink multicast is not
    used where the environment forbids it (NCCL_NVLS_ENABLE=0). Exit code 3 when nothing works.
    """
    import json

    from agent.cli.screen import make_console
    from agent.home import Home
    from agent.node_probe import probe_node
    from agent.probe_table import as_json as content_of
    from agent.probe_table import rows_of
    from agent.spec import load_spec, seconds_of
    from agent.studies import make_plan

    try:
        budget_s = seconds_of(time_budget)
    except ValueError as error:
        raise click.BadParameter(f"{time_budget!r}: {error}", param_hint="--time-budget") from error
    place, console = Home.find(home), make_console()
    console.quiet = as_json
    with console.status("looking at the node and the engine"):
        plan = make_plan(load_spec(None, {name: value for name, value in given.items() if value}), place)
    probed = probe_node(plan, place, console, sizes=sizes, began=BEGAN, time_budget_s=budget_s)
    rows = rows_of(probed)
    if as_json:
        click.echo(json.dumps(content_of(probed, rows), indent=2, ensure_ascii=False))
    else:
        _print(probed, rows, console)
    context.exit(_exit_code(probed, rows))


def _exit_code(probed: Probed, rows: Sequence[Row]) -> int:
    from agent.errors import INTERRUPTED_EXIT_CODE, NodeUnusableError, NothingWorksError
    from agent.probe_table import RowState

    if probed.stop.node_unusable:
        return NodeUnusableError.exit_code
    if probed.stop.why.startswith("interrupted"):
        return INTERRUPTED_EXIT_CODE
    is_open = any(row.pass_us is not None or row.state is RowState.NOT_REACHED for row in rows)
    return 0 if is_open else NothingWorksError.exit_code


def _print(probed: Probed, rows: Sequence[Row], console: Console) -> None:
    from agent.cli.screen import print_indented
    from agent.probe_table import RowState, software_of

    timed = [row for row in rows if row.calls]
    if timed:
        if not console.is_terminal:
            console.width = FILE_WIDTH
        console.print(_table(timed))
    for state in RowState:
        others = [row for row in rows if row.state is state and not row.calls]
        if others:
            console.print(f"\n{state.value}:", style="bold")
        grouped: dict[str, list[str]] = {}
        for row in others:
            grouped.setdefault(row.why, []).append(row.name)
        for why, names in grouped.items():
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            print_indented(console, ", ".join(names[:MOST_NAMES]) + more + (f": {why}" if why else ""))
    for line in software_of(rows):
        console.print(f"\nby {line}", soft_wrap=True)
    console.print(f"{probed.seconds:.0f} s, {probed.stop.why}. Stored as study {probed.study}:", soft_wrap=True)
    print_indented(console, f"agent deadends {probed.study}")


def _table(rows: Sequence[Row]) -> object:
    """Median microseconds of one sum by message size, eager and from a CUDA graph, and the sum over a pass."""
    from rich.table import Table

    from agent.probe_table import RowState, sizes_of

    table = Table(box=None, pad_edge=False)
    table.add_column("µs, median (10 % – 90 %)", no_wrap=True)
    columns = [
        (size, mode)
        for size in sizes_of(rows)
        for mode in ("eager", "graph")
        if any(call.bytes == size and call.mode == mode for row in rows for call in row.calls)
    ]
    for size, mode in columns:
        table.add_column(f"{_shown(size)} {mode}", justify="right", no_wrap=True)
    table.add_column("verify pass", justify="right", no_wrap=True)
    table.add_column("")
    for row in rows:
        said = "; ".join(filter(None, (row.why, _others(row))))
        style = None if row.state is RowState.WORKS else "yellow"
        total = f"{row.pass_us:.0f}" if row.pass_us is not None else ""
        table.add_row(row.name, *(_cell(row, *column) for column in columns), total, said, style=style)
    return table


def _others(row: Row) -> str:
    """What is exchanged beside the sums where tokens travel to their experts, in the mode that is served in."""
    if not any(call.op == "all_to_all" for call in row.calls):
        return ""
    mode = "graph" if any(call.mode == "graph" for call in row.calls) else "eager"
    calls = [call for call in row.calls if call.op != "all_reduce" and call.mode == mode]
    found: dict[str, list[str]] = {}
    for call in calls:
        found.setdefault(call.op, []).append(f"{_shown(call.bytes)} {call.us_p50:.1f}")
    return "; ".join(f"{op} {', '.join(dict.fromkeys(times))}" for op, times in found.items())


def _cell(row: Row, size: int, mode: str) -> str:
    for call in row.calls:
        if call.op == "all_reduce" and call.bytes == size and call.mode == mode:
            return f"{call.us_p50:.1f} ({call.us_p10:.1f}–{call.us_p90:.1f})"
    return ""


def _shown(size: int) -> str:
    for unit, number in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= number:
            return f"{size / number:.3g} {unit}"
    return f"{size} B"
