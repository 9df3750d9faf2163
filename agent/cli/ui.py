"""`agent ui`: MLflow's view of a study, on this host only."""

from __future__ import annotations

import click

from agent.cli.options import home_option, storage_option, study_argument


@click.command(epilog="Example: agent ui --port 5001")
@study_argument
@click.option("--port", type=click.IntRange(1, 65535), help="Port of 127.0.0.1.  [default: 5000, else a free one]")
@storage_option
@home_option
def command(study: str | None, port: int | None, storage: str | None, home: str | None) -> None:
    """Show every trial of STUDY (by default the last one) in MLflow: serves on 127.0.0.1 until Ctrl-C.

    With a tracking server there is nothing to start: its address is printed.
    """
    import os
    import sys

    from agent.cli.mirror_trouble import mirror_trouble
    from agent.errors import UsageError
    from agent.home import Home
    from agent.mirror.tracking import default_artifact_root, default_tracking_uri, is_server, ui_arguments, ui_page
    from agent.reading import read_study
    from agent.redaction import redact_url
    from agent.session import make_mirror
    from runners.ports import is_free

    place = Home.find(home)
    reading = read_study(place, study, storage)
    uri = reading.tracking_uri
    with mirror_trouble():
        experiment = make_mirror(uri, place).experiment_of(reading.store.name)
    if experiment is None:
        raise UsageError(f"MLflow has nothing of study {reading.store.name} yet: agent sync {reading.store.name}")
    if is_server(uri):
        click.echo(f"{redact_url(uri).rstrip('/')}/{ui_page(experiment)}")
        return
    if port is not None and not is_free(port):
        raise UsageError(f"port {port} of 127.0.0.1 is taken: name another with --port")
    chosen = port or _free_port()
    click.echo(f"open http://127.0.0.1:{chosen}/{ui_page(experiment)}")
    root = default_artifact_root(place.path) if uri == default_tracking_uri(place.path) else None
    sys.stdout.flush()
    # MLflow 3.17 would start eight more processes, for jobs that a study never asks for.
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
    words = [sys.executable, "-m", "mlflow", *ui_arguments(uri, root, chosen)]
    os.execv(sys.executable, words)  # noqa: S606 (an argument list, no shell)


def _free_port() -> int:
    from agent.mirror.tracking import UI_PORT
    from runners.ports import free_port, is_free

    return UI_PORT if is_free(UI_PORT) else free_port()
