"""Create or reopen a study and run it. `agent search` and `agent resume` are thin fronts of this."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.asked_space import asked_space
from agent.asked_workload import asked_goals, asked_workload
from agent.classify.user_rules import UserRule
from agent.cluster import ClusterView
from agent.cluster_study import asked_cluster
from agent.deadends.dead_end import DeadEndState
from agent.environment import collected_facts, file_facts
from agent.errors import NodeUnusableError, UsageError
from agent.heritage import inherited_by, inherited_spread
from agent.home import Home, check_stored_name
from agent.interference import check_parallel
from agent.mirror.tracking import check_tracking_uri, default_tracking_uri
from agent.modelled import asked_node
from agent.named_space import named_space
from agent.redaction import redact_url
from agent.rungs import asked_rungs, check_engine
from agent.server import Server, asked_server, check_fixed, with_engine_of_command
from agent.session import Ended, SessionOptions, run_session
from agent.settings import StudySettings
from agent.side_by_side import check_room, ranks_of_study
from agent.spec import StudySpec
from agent.spread import asserted
from agent.store.manifest import Manifest
from agent.store.opening import open_storage
from agent.store.storage_url import check_existing, storage_problem
from agent.store.study_store import BUDGET, StudyStore, study_names
from agent.study_names import free_name, named
from agent.study_rules import asked_rules, store_rules
from agent.wishes import read_wishes
from runners import EngineSettings
from runners.ray_address import address_problem

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from rich.console import Console

CPU_RANKS = 2
"""Ranks on a node without a GPU: the fewest that have something to exchange."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A study that is checked and complete, but not stored yet."""

    spec: StudySpec
    manifest: Manifest
    storage_url: str
    tracking_uri: str
    server: Server | None = None
    """What the installed engine was found to be, for studies of a server."""
    rules: tuple[UserRule, ...] = ()
    """Rules of the user's own."""
    cluster: ClusterView | None = None
    """The nodes of somebody's cluster that the study is of, and those that it leaves out."""

    @property
    def session(self) -> SessionOptions:
        """How to run it."""
        return SessionOptions(
            tracking_uri=self.tracking_uri,
            ray_address=self.spec.ray_address,
            slots=self.spec.trials_per_node,
            time_budget_s=self.spec.time_budget_s,
        )


def make_plan(spec: StudySpec, home: Home) -> Plan:
    """Check a specification against itself, its space, its engine and the node. Nothing is written.

    Raises:
        SpecificationError, UsageError: what is wrong and what to do.
        NodeUnusableError: the node's facts cannot be read, or its Ray cannot be reached.
    """
    spec = with_engine_of_command(spec)
    modelled = asked_node(spec)
    check_engine(spec)
    rules = asked_rules(spec)
    server = asked_server(spec, os.environ)
    whole = modelled[0].space if modelled else server.space if server else named_space(spec)
    space = asked_space(spec, whole, server)
    home.check()
    _check_addresses(spec)
    cluster = asked_cluster(spec, server, partial(study_facts, spec, server=server))
    facts = modelled[0].facts if modelled else cluster.taken.facts if cluster else node_facts(spec, server)
    engine = engine_settings(spec, facts, server, modelled[1] if modelled else None)
    if not modelled and not spec.accept_interference:
        check_parallel(home, spec.trials_per_node, facts, ranks_of_study(space, engine))
    if not modelled and spec.ray_address is None:
        check_room(space, engine, facts, os.environ, spec.trials_per_node)
    if server is not None:
        check_fixed(spec, engine, space)
    goals = asked_goals(spec)
    settings = StudySettings(
        name=spec.name or _plain(spec.engine),
        engine=engine,
        space=modelled[0].name if modelled else spec.space or spec.engine,
        workload=asked_workload(spec, goals),
        goals=goals,
        seed=spec.seed,
        **asked_rungs(spec, engine),
        stop_early=spec.stop_early,
    )
    facts = {**file_facts(engine.model_dump()), **facts}
    stated = None if spec.launch_noise is None else asserted(spec.launch_noise)
    manifest = Manifest(settings=settings, space=space, facts=facts, created_at=datetime.now(UTC), spread=stated)
    return Plan(spec, manifest, spec.storage or home.storage_url, _tracking_uri(spec, home), server, rules, cluster)


def start(plan: Plan, home: Home, console: Console) -> Ended:
    """Store the planned study and run it.

    Raises:
        UsageError: the name is taken, or a study of the same specification is open.
    """
    if plan.storage_url == home.storage_url:
        home.create()
    storage = open_storage(plan.storage_url)
    manifest = _with_free_name(plan, storage, home)
    if plan.spec.inherit:
        found: dict[str, object] = {"inherited": inherited_by(manifest, storage, plan.storage_url)}
        found |= {"spread": manifest.spread or inherited_spread(manifest, storage, plan.storage_url)}
        manifest = manifest.model_copy(update=found)
    home.create()
    store = StudyStore.create(storage, plan.storage_url, manifest)
    store.set_attribute(BUDGET, plan.spec.budget)
    if plan.rules:
        store_rules(store, plan.rules)
    home.remember(store.name, plan.storage_url, plan.tracking_uri)
    if manifest.inherited:
        console.print(_inherited_words(manifest), soft_wrap=True)
    if manifest.spread is not None:
        console.print(f"launches of one assignment differ by {manifest.spread}", soft_wrap=True)
    return run_session(store, home, plan.session, console)


def _inherited_words(manifest: Manifest) -> str:
    stale = sum(found.state is DeadEndState.STALE for found in manifest.inherited)
    again = f", {stale} of them to be checked again" if stale else ""
    return f"starting from {len(manifest.inherited)} dead ends of earlier studies{again} (--no-inherit: from none)"


def open_study(home: Home, name: str | None, storage_url: str | None) -> tuple[StudyStore, str]:
    """Return a stored study (by default the last one) and its tracking address.

    Raises:
        UsageError: when there is none, or none of that name.
    """
    last = home.last()
    url = storage_url or last.get("storage") or home.storage_url
    check_existing(url)
    storage = open_storage(url)
    wanted = name or last.get("study")
    known = study_names(storage)
    if wanted is None:
        if len(known) != 1:
            raise UsageError(f"which study? There are: {', '.join(known) or 'none'}")
        wanted = known[0]
    if wanted not in known:
        from search_spaces import nearest

        raise UsageError(f"no study '{wanted}' in this storage. {nearest(wanted, known) if known else 'It is empty.'}")
    check_stored_name(wanted)
    tracking = last.get("tracking") if last.get("study") == wanted else None
    tracking = tracking or os.environ.get("MLFLOW_TRACKING_URI") or default_tracking_uri(home.path)
    return StudyStore(storage, url, wanted), tracking


def node_facts(spec: StudySpec, server: Server | None = None) -> dict[str, object]:
    """Return the facts of this node, with the device and the number of ranks that the study will use.

    Software and model are those of the server's own environment, where there is one.
    """
    return study_facts(spec, collected_facts(server.paths if server else ()), server)


def study_facts(spec: StudySpec, facts: Mapping[str, object], server: Server | None) -> dict[str, object]:
    """Return the facts of a node with what a study adds to them: device, number of ranks, engine, model."""
    num_gpus = int(str(facts.get("gpu_count") or 0))
    device = spec.device or ("cuda" if num_gpus else "cpu")
    if device == "cuda" and not num_gpus:
        raise spec.error("this node has no GPU that its driver shows: leave it away", "device", "cuda")
    ranks = spec.tp or (server.num_ranks if server else None) or (num_gpus if device == "cuda" else CPU_RANKS)
    ours = {"device": device, "num_ranks": ranks, "engine_version": f"{spec.engine} (torch {facts.get('torch')})"}
    return {**facts, **ours, **(server.facts if server else {})}


def engine_settings(
    spec: StudySpec, facts: Mapping[str, object], server: Server | None, node_model: Path | None
) -> EngineSettings:
    """Return what stays fixed through a study, on a node with these facts."""
    return EngineSettings(
        engine=spec.engine,
        num_ranks=int(str(facts["num_ranks"])),
        device=str(facts["device"]),
        options=server.options if server else spec.options,
        variables=server.variables if server else spec.environment,
        python=server.python if server else spec.engine_python,
        model=server.model if server else spec.model,
        draft_model=server.draft_model if server else spec.draft,
        node_model=None if node_model is None else str(node_model),
    )


def _check_addresses(spec: StudySpec) -> None:
    """An address that was typed must answer now; one that is merely in the environment may be down for a while."""
    if spec.storage is not None and (problem := storage_problem(spec.storage)):
        raise spec.error(problem, "storage", redact_url(spec.storage))
    if spec.tracking_uri is not None and (problem := check_tracking_uri(spec.tracking_uri)):
        remedy = "Start the server, or leave it away: `agent sync` mirrors later."
        raise spec.error(f"{problem} {remedy}", "tracking_uri")
    if spec.ray_address is not None and (problem := address_problem(spec.ray_address)):
        raise NodeUnusableError(f"Ray at {spec.ray_address}: {problem}")


def _tracking_uri(spec: StudySpec, home: Home) -> str:
    return spec.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or default_tracking_uri(home.path)


def _with_free_name(plan: Plan, storage: BaseStorage, home: Home) -> Manifest:
    manifest, known = plan.manifest, study_names(storage)
    if plan.spec.name is None:
        for name in known:
            _refuse_if_open(StudyStore(storage, plan.storage_url, name), manifest, home)
        return named(manifest, free_name(manifest.settings.name, known))
    if plan.spec.name not in known:
        return manifest
    store = StudyStore(storage, plan.storage_url, plan.spec.name)
    if store.manifest.space.fingerprint != manifest.space.fingerprint:
        raise UsageError(
            f"--name {store.name}: a study of another search space has this name. Choose another name, "
            f"or go on with that one: {home.resume(store.name)}"
        )
    _refuse_if_open(store, manifest, home)
    raise UsageError(
        f"--name {store.name}: a study has this name already. Choose another name, or give it more launches: "
        f"{home.resume(store.name)} --budget N"
    )


def _refuse_if_open(store: StudyStore, manifest: Manifest, home: Home) -> None:
    spent, budget = sum(trial.counts for trial in store.trials()), read_wishes(store).budget
    if spent < budget and _same_work(store.manifest, manifest):
        raise UsageError(
            f"study {store.name} of the same specification is open ({spent} of {budget} launches): "
            f"go on with `{home.resume(store.name)}`, or begin another one with --name"
        )


def _same_work(one: Manifest, other: Manifest) -> bool:
    settings = one.settings.model_copy(update={"name": other.settings.name})
    return settings == other.settings and one.space.fingerprint == other.space.fingerprint


def _plain(engine: str) -> str:
    return engine.rpartition(":")[2] or engine
