"""`agent sync`: make MLflow equal to the storage."""

from __future__ import annotations

import click

from agent.cli.options import home_option, json_option, storage_option, study_argument

SLOW_S = 30.0
"""How long a server may take to say that it is alive: a repair has time, unlike a search."""


@click.command(epilog="Example: agent sync")
@study_argument
@click.option("--tracking-uri", metavar="URL", help="MLflow server or store.  [default: the study's]")
@json_option
@storage_option
@home_option
def command(study: str | None, tracking_uri: str | None, as_json: bool, storage: str | None, home: str | None) -> None:
    """Make MLflow equal to the storage of STUDY (by default the last one). Running it again changes nothing."""
    import dataclasses
    import json

    from agent.cli.mirror_trouble import mirror_trouble
    from agent.errors import UsageError
    from agent.home import Home
    from agent.mirror.client import wait_for_slow_servers
    from agent.mirror.tracking import check_tracking_uri
    from agent.reading import read_study
    from agent.session import make_mirror
    from agent.snapshot import snapshot_of, status_of

    place = Home.find(home)
    reading = read_study(place, study, storage)
    uri = tracking_uri or reading.tracking_uri
    wait_for_slow_servers()
    if (problem := check_tracking_uri(uri, SLOW_S)) is not None:
        raise UsageError(f"{problem} Start the server, or name another with --tracking-uri.")
    status = status_of(reading.store, reading.history)
    with mirror_trouble():
        report = make_mirror(uri, place).sync(snapshot_of(reading.store, reading.history, status))
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(report)))
        return
    click.echo(
        f"{reading.store.name}: {report.created} runs created, {report.updated} corrected, "
        f"{report.unchanged} as they should be, {report.removed} removed"
    )
