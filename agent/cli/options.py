"""Options that several commands share, with one wording."""

from __future__ import annotations

import click

home_option = click.option("--home", metavar="FOLDER", help="State folder.  [default: AGENT_HOME, or ./agent-state]")
storage_option = click.option("--storage", metavar="URL", help="Optuna storage.  [default: a SQLite file in the home]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
study_argument = click.argument("study", required=False)
