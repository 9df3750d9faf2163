"""`agent pause`: let a running search come to rest."""

from __future__ import annotations

import click

from agent.cli.options import home_option, storage_option, study_argument


@click.command(epilog="Example: agent pause && agent resume")
@study_argument
@storage_option
@home_option
def command(study: str | None, storage: str | None, home: str | None) -> None:
    """Let the agent that runs STUDY (by default the last one) finish what is in flight, then leave.

    Nothing is cut off, unlike with Ctrl-C. `agent resume` goes on.
    """
    from agent.home import Home
    from agent.reading import read_study
    from agent.recovery import owner_of
    from agent.store.study_store import PAUSED

    reading = read_study(Home.find(home), study, storage)
    store = reading.store
    owner = owner_of(store)
    if owner is None:
        click.echo(f"{store.name} is not running; go on with: {reading.again}")
        return
    store.set_attribute(PAUSED, True)
    click.echo(f"{store.name}: {owner} finishes what is in flight, then leaves; go on with: {reading.again}")
