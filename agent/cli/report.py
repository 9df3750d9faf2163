"""`agent report`: everything that was found, as one HTML file and as Markdown."""

from __future__ import annotations

from pathlib import Path

import click

from agent.cli.options import home_option, storage_option, study_argument


@click.command(epilog="Example: agent report --output .")
@study_argument
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for report.html and report.md.  [default: reports/STUDY in the home]",
)
@storage_option
@home_option
def command(study: str | None, output: Path | None, storage: str | None, home: str | None) -> None:
    """Write the report of STUDY (by default the last one): report.html, which needs no network, and report.md."""
    from agent.home import Home, write_atomically
    from agent.reading import read_study
    from agent.report import as_report, reproduce_command
    from agent.report_page import render
    from agent.wishes import read_counts

    place = Home.find(home)
    reading = read_study(place, study, storage)
    summary, best = reading.summary, reading.summary.best
    line = reproduce_command(reading.history.runner, best.first, reading.store.manifest) if best else None
    folder = output or place.path / "reports" / summary.study
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "report.html", render(summary, reading.history, read_counts(reading.store), line))
        write_atomically(folder / "report.md", as_report(summary, line))
    except OSError as error:
        from agent.errors import StorageError

        raise StorageError(
            f"the report cannot be written to {folder}: {error.strerror}. Name another folder: --output"
        ) from error
    click.echo(folder / "report.html")
    click.echo(folder / "report.md")
    if best and reading.missing:
        click.echo(f"note: the command in it does not run now: {reading.missing}", err=True)
