"""`agent doctor`: what this node and its engines can use, what is missing, and how to get it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from agent.cli.options import home_option, json_option

if TYPE_CHECKING:
    from rich.console import Console

    from agent.cluster import ClusterView
    from agent.doctor import EngineCheck, ValueCheck
    from agent.interference import Interference
    from agent.node_checks import NodeCheck
    from agent.spec import StudySpec

ENGINES = ("torch", "sglang", "vllm")
LAUNCHED_WITH = ("tp", "device", "trials_per_node")
"""What of the options matters to the launches of --interference."""


@click.command(epilog="Example: agent doctor --engine vllm --engine-python ~/vllm")
@click.option("--engine", type=click.Choice(ENGINES), help="Look at this engine only.  [default: all]")
@click.option("--engine-python", metavar="PATH", help="Python (or folder) of the environment that holds the server.")
@click.option("--model", metavar="MODEL", help="Model of a server: what it can do decides as well.")
@click.option("--draft", metavar="MODEL", help="Draft model of a server.")
@click.option("--tp", type=int, help="Ranks of the engine.  [default: every GPU; 2 without a GPU]")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), help="Where the ranks run.  [default: GPUs if any]")
@click.option("--ray-address", help="Ray cluster whose nodes are looked at as well.")
@click.option("--interference", is_flag=True, help="Launch and measure: what does a trial do to a neighbour here?")
@click.option("--trials-per-node", type=int, help="Trials at the same time, for --interference.  [default: 2]")
@json_option
@home_option
@click.pass_context
def command(
    context: click.Context,
    /,
    engine: str | None,
    ray_address: str | None,
    interference: bool,
    as_json: bool,
    home: str | None,
    **given: Any,
) -> None:
    """Say what this node and its engines can use, what is missing, and how to get it. Nothing is launched, except with
    --interference, which measures what two trials at the same time do to each other and keeps it in the state folder.

    Exit code 4 when the engine (without --engine: every one of them) cannot be used here.
    """
    from pathlib import Path

    from agent.cli.screen import make_console
    from agent.doctor import examine
    from agent.errors import NodeUnusableError
    from agent.home import Home
    from agent.interference import known
    from agent.node_checks import node_checks
    from agent.spec import load_spec

    options = {name: value for name, value in given.items() if value is not None}
    console = make_console()
    if interference:
        asked: dict[str, object] = {each: options[each] for each in LAUNCHED_WITH if each in options}
        _measure(load_spec(None, asked), home, as_json)
        return
    checks: list[EngineCheck] = []
    facts: dict[str, object] = {}
    for name in (engine,) if engine else ENGINES:
        kept = {key: value for key, value in options.items() if name != "torch" or key in ("tp", "device")}
        with console.status(f"looking at {name}"):
            check, of_engine = examine(load_spec(None, {"engine": name, **kept}))
        checks.append(check)
        facts = of_engine if check.is_usable or not facts else facts
    measured = [each for each in known(Home.find(home)) if each.node == facts.get("hostname")]
    node = node_checks(facts, Home.find(home), [Path(check.python).parent for check in checks if check.python])
    view = _cluster(ray_address, engine, options) if ray_address else None
    if as_json:
        neighbours = [_neighbour(each) for each in measured]
        nodes = {"interference": neighbours, "cluster": view.document() if view else None}
        click.echo(json.dumps({**_as_json(facts, node, checks), **nodes}))
    else:
        _print(facts, node, checks, console)
        if view:
            _print_cluster(view, console)
        for each in measured:
            console.print(f"\n{_neighbour_words(each)}", soft_wrap=True)
    is_usable = any(check.is_usable for check in checks)
    if not is_usable or any(each.is_needed and not each.is_there for each in node):
        context.exit(NodeUnusableError.exit_code)


def _cluster(address: str, engine: str | None, options: dict[str, Any]) -> ClusterView:
    """Return the nodes of a cluster as a study sees them; without an engine, one of the torch engine."""
    from functools import partial

    from agent.cluster_study import view_of
    from agent.server import SERVERS, asked_server
    from agent.spec import load_spec
    from agent.studies import study_facts

    of_torch = {key: value for key, value in options.items() if key in ("tp", "device")}
    spec = load_spec(None, {"engine": engine, **options} if engine else of_torch)
    server = asked_server(spec, os.environ, needs_model=False) if spec.engine in SERVERS else None
    return view_of(address, spec, server, partial(study_facts, spec, server=server))


def _print_cluster(view: ClusterView, console: Console) -> None:
    """Print what each kind of node is, then which of them a study would take."""
    from agent.cli.screen import print_indented
    from runners.node_facts import summary_lines

    for group in (view.taken, *view.others):
        console.print(f"\n{group.names}", style="bold", soft_wrap=True)
        for line in summary_lines(group.facts):
            print_indented(console, line)
    console.print()
    for line in view.lines():
        print_indented(console, line, 0)


def _measure(spec: StudySpec, home: str | None, as_json: bool) -> None:
    """Run the interference test and print what it says."""
    from agent.cli.screen import make_console, print_indented
    from agent.home import Home
    from agent.interference_run import run_interference_test

    console = make_console()
    with console.status("launching the torch engine alone and side by side"):
        found = run_interference_test(spec, Home.find(home))
    if as_json:
        click.echo(json.dumps(_neighbour(found)))
        return
    print_indented(console, _neighbour_words(found), 0)


def _neighbour(found: Interference) -> dict[str, object]:
    return {**found.model_dump(mode="json"), "is_within_noise": found.is_within_noise}


def _neighbour_words(found: Interference) -> str:
    when = f"{found.measured_at:%Y-%m-%d}"
    return f"side by side, {found.num_ranks} {found.device} ranks, measured on {when}: {found.words()}"


def _as_json(facts: dict[str, object], node: list[NodeCheck], checks: list[EngineCheck]) -> dict[str, object]:
    engines = [
        {
            "engine": check.engine,
            "usable": check.is_usable,
            "version": check.version or None,
            "python": check.python or None,
            "problem": check.problem or None,
            "parameters": {
                name: [{**asdict(value), "state": value.state.value} for value in values]
                for name, values in (check.parameters or {}).items()
            },
        }
        for check in checks
    ]
    return {"facts": facts, "node": [asdict(each) for each in node], "engines": engines}


def _print(facts: dict[str, object], node: list[NodeCheck], checks: list[EngineCheck], console: Console) -> None:
    from agent.cli.screen import print_indented
    from runners.node_facts import summary_lines

    for line in summary_lines(facts):
        print_indented(console, line, 0)
    console.print()
    for each in node:
        console.print(f"{each.name:<9} {each.found}", style=None if each.is_there else "yellow", soft_wrap=True)
        if each.cure:
            print_indented(console, f"cure: {each.cure}", 10)
    for check in checks:
        where = f" of {check.python}" if check.python else ""
        console.print(f"\n{check.engine} {check.version}{where}".rstrip(), style="bold", soft_wrap=True)
        if check.problem:
            print_indented(console, check.problem)
        for name, values in (check.parameters or {}).items():
            _print_parameter(name, values, console)


def _print_parameter(name: str, values: tuple[ValueCheck, ...], console: Console) -> None:
    """Print the usable values in one line, and below it those that are not, with the reason and the cure."""
    from agent.cli.screen import print_indented
    from agent.doctor import State

    usable = [str(each.value) for each in values if each.state is State.USABLE]
    print_indented(console, f"{name}: {', '.join(usable) or 'nothing to choose'}")
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for each in values:
        if each.state is not State.USABLE:
            grouped.setdefault((each.state.value, each.why, each.cure), []).append(str(each.value))
    for (state, why, cure), names in grouped.items():
        print_indented(console, f"{', '.join(names)}: {state}, {why}", 4)
        if cure:
            print_indented(console, f"cure: {cure}", 6)
