"""What a node and an installed engine can use: each value of each parameter, why not, and how to get it.

Nothing is launched. A value that is called usable may still fail in a launch; one that is called refused would fail.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.engine_python import ask_installed
from agent.errors import AgentError
from agent.server import SERVERS, Server, asked_server
from agent.spec import StudySpec
from agent.studies import engine_settings, node_facts
from runners import EngineSettings, Resolution, Runner
from runners.engine_dialects.needs import missing_package
from runners.registry import make_runner
from search_spaces import Assignment, Facts, Scalar, SearchSpace, SpecificationError, load_space
from search_spaces.assignment import is_one_of

RANKS = (2, 4, 8)
"""Numbers of ranks that a cure may propose."""


class State(StrEnum):
    """What is known about a value before a launch."""

    USABLE = "usable"
    CONDITIONAL = "conditional"
    """Usable beside some values of other parameters only."""
    REPLACED = "replaced"
    """The engine runs something else without a word."""
    REFUSED = "refused"
    NOT_IN_VERSION = "not in this version"
    PACKAGE_MISSING = "package missing"
    NOT_HERE = "without meaning here"


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """What is known about one value."""

    value: Scalar
    state: State
    why: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """What is known about one engine on this node."""

    engine: str
    version: str = ""
    python: str = ""
    problem: str = ""
    """Why it cannot be used at all, with what to do; empty when it can."""
    parameters: Mapping[str, tuple[ValueCheck, ...]] | None = None

    @property
    def is_usable(self) -> bool:
        """True when the engine can be launched, as far as that is known without a launch."""
        return not self.problem


def examine(spec: StudySpec) -> tuple[EngineCheck, dict[str, object]]:
    """Return what the engine of a specification can use here, and the node's facts as a study would have them.

    Raises:
        UsageError, SpecificationError: an option that is wrong by itself, such as a model folder that does not exist.
    """
    server: Server | None = None
    if spec.engine in SERVERS:
        try:
            ask_installed(spec, spec.engine, None, os.environ)
        except (AgentError, SpecificationError) as error:
            return EngineCheck(spec.engine, problem=str(error)), node_facts(spec)
        server = asked_server(spec, os.environ, needs_model=False)
    facts = node_facts(spec, server)
    space = server.space if server else load_space(spec.space or spec.engine)
    settings = engine_settings(spec, facts, server, None)
    examination = _Examination(space, settings, facts, make_runner(spec.engine), server)
    check = EngineCheck(
        engine=spec.engine,
        version=server.accepted.version if server else str(facts.get("torch")),
        python=server.python if server else "",
        problem="" if server or facts.get("torch") else "torch is not installed: pip install torch",
        parameters={name: tuple(examination.values(name)) for name in space.parameters},
    )
    return check, facts


@dataclass(frozen=True)
class _Examination:
    space: SearchSpace
    settings: EngineSettings
    facts: Facts
    runner: Runner
    server: Server | None

    def values(self, name: str) -> Iterator[ValueCheck]:
        parameter = self.space.parameters[name]
        missing = [fact for fact, allowed in parameter.active_where.items() if not self._has(fact, allowed)]
        for value in parameter.domain:
            if missing:
                wanted = ", ".join(f"{fact} {' or '.join(map(str, parameter.active_where[fact]))}" for fact in missing)
                yield ValueCheck(value, State.NOT_HERE, f"needs {wanted}")
            else:
                yield self._in_version(name, value) or self._resolved(name, value)

    def _has(self, fact: str, allowed: tuple[Scalar, ...]) -> bool:
        return is_one_of(self.facts.get(fact), allowed)

    def _in_version(self, name: str, value: Scalar) -> ValueCheck | None:
        why = self.server.unavailable.get(name, {}).get(value) if self.server else None
        if why is None or self.server is None:
            return None
        known = self.space.parameters[name].versions
        cure = f"{self.server.python} -m pip install --upgrade {self.space.engine}" + (f" ({known})" if known else "")
        return ValueCheck(value, State.NOT_IN_VERSION, why.removeprefix("error: "), cure)

    def _resolved(self, name: str, value: Scalar) -> ValueCheck:
        point = self._point(name, value)
        normal = self.space.normalise(point, self.facts)
        if normal[name] != value:
            forced = (each.why for each in self.space.relations if each.forced and each.forced.parameter == name)
            return ValueCheck(value, State.CONDITIONAL, next(forced, "other values decide it"))
        found = self._resolution(normal, self.settings, self.facts)
        if found.error is not None:
            return ValueCheck(value, State.REFUSED, found.error, self._cure(normal))
        for rewrite in found.rewrites:
            if rewrite.parameter == name:
                why = f"runs {rewrite.resolved}: {rewrite.why}"
                return ValueCheck(value, State.REPLACED, why, self._cure(normal, name))
        package = missing_package(self.space.engine, name, value, self.server.paths if self.server else ())
        if package is not None:
            return ValueCheck(value, State.PACKAGE_MISSING, f"there is no {package.module}", package.install)
        return ValueCheck(value, State.USABLE)

    def _point(self, name: str, value: Scalar) -> Assignment:
        """Return an assignment in which the parameter has a meaning, if possible one that runs as it says."""
        base = self.space.default_on(self.facts)
        conditions = self.space.parameters[name].active_when
        choices = [
            (base[other],) if is_one_of(base[other], allowed) else allowed for other, allowed in conditions.items()
        ]
        points = [
            {**base, **dict(zip(conditions, chosen, strict=True)), name: value}
            for chosen in itertools.product(*choices)
        ]
        return next((point for point in points if self._runs_as_said(point, name)), points[0])

    def _runs_as_said(self, point: Assignment, name: str) -> bool:
        normal = self.space.normalise(point, self.facts)
        found = self._resolution(normal, self.settings, self.facts)
        return found.error is None and normal[name] == found.assignment[name] == point[name]

    def _resolution(self, point: Assignment, settings: EngineSettings, facts: Facts) -> Resolution:
        found = self.runner.resolve(point, settings, facts)
        broken = self.space.violation(point, facts)
        return found.model_copy(update={"error": broken}) if broken and not found.error else found

    def _cure(self, point: Assignment, name: str | None = None) -> str:
        """Return what would make the value usable: a draft, or another number of ranks; else that nothing would."""
        unknown = {fact: value for fact, value in self.facts.items() if fact != "draft_method"}
        if name is None:
            drafted = self.settings.model_copy(update={"draft_model": "any"})
            if self._resolution(point, drafted, unknown).error is None:
                return "name a draft model that is made for it with --draft"
        gpus = int(str(self.facts.get("gpu_count") or 0))
        for ranks in (each for each in RANKS if each <= gpus):
            settings, facts = self.settings.model_copy(update={"num_ranks": ranks}), {**self.facts, "num_ranks": ranks}
            found = self._resolution(point, settings, facts)
            if found.error is None and not any(rewrite.parameter == name for rewrite in found.rewrites):
                return f"--tp {ranks}"
        return "nothing can be installed for it: GPUs, links, model and ranks decide"
