"""`agent deadends`: the map."""

from __future__ import annotations

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument


@click.command()
@study_argument
@json_option
@storage_option
@home_option
def command(study: str | None, as_json: bool, storage: str | None, home: str | None) -> None:
    """Show what cannot work on the node of STUDY (by default the last one): conditions, reason, evidence, cure."""
    from agent.cli.blocks import print_dead_ends
    from agent.cli.screen import make_console
    from agent.deadends.documents import as_json as map_as_json
    from agent.home import Home
    from agent.reading import read_study

    dead_ends = read_study(Home.find(home), study, storage).history.atlas.dead_ends
    if as_json:
        click.echo(map_as_json(dead_ends))
        return
    console = make_console()
    if not dead_ends:
        console.print("No dead ends: everything that was tried works here.")
        return
    print_dead_ends(dead_ends, console)
