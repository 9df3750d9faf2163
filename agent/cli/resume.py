"""`agent resume`: go on where a study was left."""

from __future__ import annotations

import os

import click

from agent.cli.options import home_option, storage_option, study_argument


@click.command(epilog="Example: agent resume --budget 60")
@study_argument
@click.option("--budget", type=click.IntRange(min=1), help="New budget in launches, for a study that is to go on.")
@click.option("--time-budget", metavar="TIME", help="Longest time, such as 90s, 30m or 2h.")
@click.option("--ray-address", metavar="HOST:PORT", help="Ray cluster to run on.  [default: a local Ray]")
@click.option(
    "--trials-per-node", type=click.IntRange(min=1), default=1, help="Trials at once on a node.  [default: 1]"
)
@click.option("--accept-interference", is_flag=True, help="Allow that though unmeasured.")
@click.option("--take-over", is_flag=True, help="Run it although its owner on another host cannot be seen.")
@click.option(
    "--accept-environment", is_flag=True, help="Go on although GPU, driver, CUDA, engine or model files changed."
)
@click.option("--rules", metavar="FILE", help="Rules of your own from now on, in the place of the study's.")
@storage_option
@home_option
@click.pass_context
def command(
    context: click.Context,
    study: str | None,
    budget: int | None,
    time_budget: str | None,
    ray_address: str | None,
    trials_per_node: int,
    accept_interference: bool,
    take_over: bool,
    accept_environment: bool,
    rules: str | None,
    storage: str | None,
    home: str | None,
) -> None:
    """Go on with STUDY (by default the last one): what is closed stays closed, what was cut off runs again."""
    from agent.cli.ending import finish
    from agent.cli.screen import make_console
    from agent.cluster_study import cluster_facts, stored_nodes
    from agent.environment import collected_facts
    from agent.errors import UsageError
    from agent.home import Home
    from agent.interference import check_parallel
    from agent.resumption import check_environment, study_to_resume
    from agent.session import SessionOptions, run_session
    from agent.side_by_side import check_room, ranks_of_study
    from agent.spec import seconds_of
    from agent.store.study_store import BUDGET
    from agent.study_rules import rules_of_file, store_rules

    place, console = Home.find(home), make_console(outlives_reader=True)
    try:
        time_budget_s = seconds_of(time_budget) if time_budget else None
    except ValueError as error:
        raise click.BadParameter(f"{time_budget!r}: {error}", param_hint="--time-budget") from error
    own_rules = rules_of_file(rules) if rules else None
    store, tracking_uri = study_to_resume(place, study, storage, budget, console)
    if ray_address is None and stored_nodes(store):
        console.print(f"note: {store.name} ran on the nodes of a cluster; to go on there, add --ray-address")
    is_modelled = store.manifest.settings.engine.node_model is not None
    collect = cluster_facts(ray_address, store.manifest) if ray_address and not is_modelled else collected_facts
    changed = check_environment(store, place, console, accept=accept_environment, collect=collect)
    place.create()
    facts, space, engine = store.manifest.facts, store.manifest.space, store.manifest.settings.engine
    if ray_address is None and not is_modelled:
        check_room(space, engine, facts, os.environ, trials_per_node)
    if not accept_interference and not is_modelled:
        check_parallel(place, trials_per_node, facts, ranks_of_study(space, engine))
    if budget is not None:
        spent = sum(trial.counts for trial in store.trials())
        if budget < spent:
            raise UsageError(
                f"--budget {budget}: {spent} launches of study {store.name} are closed already: ask for more"
            )
        store.set_attribute(BUDGET, budget)
    if own_rules is not None:
        store_rules(store, own_rules)
    place.remember(store.name, store.url, tracking_uri)
    options = SessionOptions(tracking_uri, ray_address, trials_per_node, time_budget_s, take_over, changed)
    ended = run_session(store, place, options, console)
    context.exit(finish(ended, store.manifest, tracking_uri, place, console))
