"""`agent search`: plan, run, and say what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agent.cli.options import home_option, storage_option

MAY_BE_SECRET = ("environment", "options")
"""Options whose values no message repeats."""
RUNGS = ("resolve", "probe", "dummy", "full")


def _pairs(_context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for name, value in _split(parameter, texts):
        if name in pairs and pairs[name] != value:
            values = "" if parameter.name in MAY_BE_SECRET else f", as {pairs[name]} and as {value}"
            raise click.BadParameter(f"{name} is given twice{values}: keep one")
        pairs[name] = value
    return pairs


def _many(_context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in _split(parameter, texts):
        found[name] = (*found.get(name, ()), value)
    return found


def _split(parameter: click.Parameter, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    for text in texts:
        if "=" not in text:
            shown = "this" if parameter.name in MAY_BE_SECRET else repr(text)
            raise click.BadParameter(f"{shown} is not NAME=VALUE, such as draft_length=3", param=parameter)
    return [(name, value) for name, _, value in (text.partition("=") for text in texts)]


def _levels(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 1,8") from error


exclude_option = click.option(
    "--exclude", multiple=True, callback=_many, metavar="NAME=VALUE", help="Never try this value."
)


@click.command(
    epilog="Example: agent search --engine sglang --model ~/models/big --draft ~/models/big-eagle3 --tp 8 --budget 40"
)
@click.option("--budget", type=int, help="Launches, failures and repeats included.  [default: 40]")
@click.option("--time-budget", metavar="TIME", help="Longest time, such as 90s, 30m or 2h; resumable afterwards.")
@click.option("--start-rung", type=click.Choice(RUNGS), help="Cheapest rung to climb from.  [default: resolve]")
@click.option("--max-rung", type=click.Choice(RUNGS), help="Dearest rung to climb to.  [default: full]")
@click.option("--engine", help="sglang, vllm, torch, replay, or package.module:Class of your own.  [default: torch]")
@click.option("--model", metavar="MODEL", help="Model of a server: a folder, or a name on a hub.")
@click.option("--draft", metavar="MODEL", help="Draft model of a server, for speculation with one.")
@click.option(
    "--engine-python",
    metavar="PATH",
    help="Python (or folder) of the environment that holds the server.  [default: the first one at hand that has it]",
)
@click.option(
    "--base-cmd", metavar="COMMAND", help='What you run now, as "vllm serve MODEL …": the search starts there.'
)
@click.option(
    "--node",
    metavar="NAME|FILE",
    help="Modelled node for --engine replay; nothing is launched.",
)
@click.option(
    "--space", metavar="NAME|FILE", help="Search space: of the catalogue, or a YAML file.  [default: the engine's]"
)
@click.option("--spec", "spec_path", type=click.Path(path_type=Path), help="Study specification, a YAML file.")
@click.option("--name", help="Name of the study.  [default: the engine's name]")
@click.option("--tp", type=int, help="Ranks of the engine.  [default: every GPU; 2 without a GPU]")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), help="Where the ranks run.  [default: GPUs if any]")
@click.option("--concurrency", callback=_levels, metavar="N,N…", help="Requests in flight, each level.  [default: 1,8]")
@click.option(
    "--workload", metavar="NAME|FILE", help="Lengths of chat, code or long-context, or a JSONL file of prompts."
)
@click.option("--prompt-tokens", type=int, help="Prompt length.  [default: the engine's preset]")
@click.option("--output-tokens", type=int, help="Tokens generated for each request.  [default: the engine's preset]")
@click.option("--requests", type=int, help="Requests for each level.  [default: the engine's preset]")
@click.option("--seed", type=int, help="Seed of every random choice.  [default: 0]")
@click.option("--pin", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Hold a parameter at one value.")
@exclude_option
@click.option("--option", "options", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Fixed engine flag.")
@click.option(
    "--env", "environment", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Fixed variable of a server."
)
@click.option("--rules", metavar="FILE", help="YAML file with rules of your own for failures; stored with the study.")
@storage_option
@click.option(
    "--tracking-uri",
    metavar="URL",
    help="MLflow server or store.  [default: MLFLOW_TRACKING_URI, or one in the home]",
)
@click.option("--ray-address", metavar="HOST:PORT", help="Ray cluster to run on.  [default: a local Ray]")
@click.option("--trials-per-node", type=int, help="Trials at the same time on a node.  [default: 1]")
@click.option("--accept-interference", flag_value=True, default=None, type=bool, help="Allow that though unmeasured.")
@click.option(
    "--no-inherit", "inherit", flag_value=False, default=None, type=bool, help="Do not start from known dead ends."
)
@click.option("--dry-run", is_flag=True, help="Print the plan and stop: nothing is written or launched.")
@home_option
@click.pass_context
def command(context: click.Context, /, home: str | None, spec_path: Path | None, dry_run: bool, **given: Any) -> None:
    """Search for the best configuration of this node.

    Every launch that fails is closed with its reason; what is known dead is not launched again. Ctrl-C ends the
    search cleanly, and `agent resume` goes on. Without options: 40 launches of the embedded torch engine.
    A server needs a model: `agent search --engine vllm --model MODEL`.
    """
    from agent.cli.ending import finish
    from agent.cli.plan import print_plan
    from agent.cli.screen import make_console
    from agent.home import Home
    from agent.spec import load_spec
    from agent.studies import make_plan, start

    overrides = {name: value for name, value in given.items() if value not in (None, {}, ())}
    place, console = Home.find(home), make_console(outlives_reader=True)
    with console.status("looking at the node and the engine"):
        plan = make_plan(load_spec(spec_path, overrides), place)
    print_plan(plan, console)
    if dry_run:
        return
    ended = start(plan, place, console)
    context.exit(finish(ended, ended.manifest, plan.tracking_uri, place, console))
