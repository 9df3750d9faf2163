"""The first screen of a search: the node, the engine, and what will be searched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agent.cli.screen import print_indented
from agent.goals import OUTPUT
from agent.modelled import modelled_name
from agent.redaction import redact_argv, redact_mapping, redact_text
from agent.report import simulated_note
from agent.server import Server
from agent.settings import StudySettings
from agent.side_by_side import slot_words
from agent.studies import Plan
from runners import EngineSettings
from runners.node_facts import summary_lines
from runners.simulated_acceptance import simulated_length
from search_spaces import Scalar

if TYPE_CHECKING:
    from rich.console import Console


def print_plan(plan: Plan, console: Console) -> None:
    """Print the node's facts and what will be searched, in a few lines."""
    settings, space, facts = plan.manifest.settings, plan.manifest.space, plan.manifest.facts
    if name := modelled_name(settings.engine, facts):
        print_indented(console, f"modelled node {name}: nothing is launched, times and figures are the model's", 0)
    for line in summary_lines(facts):
        print_indented(console, line, 0)
    for line in plan.cluster.lines() if plan.cluster else ():
        print_indented(console, line, 0)
    free = {name: len(space.parameters[name].domain) for name in space.varying(facts)}
    points = math.prod(free.values())
    levels = ", ".join(map(str, settings.workload.concurrency))
    what = (
        f"engine {settings.engine.engine} on {settings.engine.num_ranks} {settings.engine.device} ranks; "
        f"{len(free)} parameters, {points:,} points; {plan.spec.budget} launches at concurrency {levels}"
    )
    print_indented(console, what, 0)
    for line in (*_goal_lines(settings), *_slot_lines(plan)):
        print_indented(console, line, 0)
    if plan.server is not None:
        for line in _server_lines(plan.server, settings.engine):
            print_indented(console, line, 0)
    print_indented(console, "searching: " + ", ".join(f"{name} ({number})" for name, number in free.items()), 0)
    if plan.server is not None:
        _print_left_out(plan.server, console)


def _goal_lines(settings: StudySettings) -> Iterator[str]:
    """Yield what is served and searched for, where it is not the default."""
    workload = settings.workload
    if workload.lengths or workload.dataset:
        yield f"workload: {workload.lengths or workload.dataset}"
    if workload.arrival_per_s is not None:
        yield f"requests arrive by themselves, {workload.arrival_per_s:g} a second"
    if settings.goals != (OUTPUT,):
        yield "objective: " + "; ".join(f"{goal.name} ({goal.unit})" for goal in settings.goals)
    if workload.slo:
        yield "limits: " + ", ".join(f"{limit.name} at most {limit.at_most:g} ms" for limit in workload.slo)


def _slot_lines(plan: Plan) -> Iterator[str]:
    """Yield what the trials of this machine have to themselves, where several run at the same time."""
    spec, manifest = plan.spec, plan.manifest
    if spec.trials_per_node > 1 and spec.ray_address is None and not manifest.settings.engine.node_model:
        yield f"{spec.trials_per_node} trials at the same time, each with {slot_words(manifest, spec.trials_per_node)}"


def _server_lines(server: Server, settings: EngineSettings) -> Iterator[str]:
    yield f"{server.accepted.engine} {server.accepted.version} of {server.python}"
    yield redact_text(f"model {server.model}" + (f", draft {server.draft_model}" if server.draft_model else ""))
    fixed = [*_variables(settings.variables), *redact_argv(_words(settings.options))]
    if fixed:
        yield f"fixed: {' '.join(fixed)}"
    if server.start:
        yield "begins at: " + " ".join(f"{name}={value}" for name, value in server.start.items())
    if (length := simulated_length(settings)) is not None:
        yield simulated_note(length)
    for note in server.notes:
        yield f"note: {redact_text(note)}"


def _variables(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={text}" for name, text in redact_mapping(variables).items()]


def _words(options: Mapping[str, Scalar]) -> list[str]:
    return [
        word for name, value in options.items() for word in (f"--{name}", *(() if value is True else (str(value),)))
    ]


def _print_left_out(server: Server, console: Console) -> None:
    """Values that this version cannot be told are no dead ends of the node, so they are told before the search."""
    if not server.unavailable:
        return
    print_indented(console, f"left out, since {server.accepted.engine} {server.accepted.version} cannot be told:", 0)
    for name, values in server.unavailable.items():
        for value, why in values.items():
            print_indented(console, f"{name}={value}: {why.removeprefix('error: ')}")
