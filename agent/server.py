"""The server of a study: what the user says about it, put together and checked against the engine that is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.engine_python import ask_installed
from agent.model_place import model_place
from agent.named_space import named_space
from agent.spec import StudySpec
from runners import EngineSettings
from runners.base_command import BaseCommand, split_base_command, started_engine
from runners.engine_dialects import (
    DRAFT_PARAMETERS,
    EngineOptions,
    ask_python,
    fixed_and_tuned,
    model_facts,
    own_key,
    unavailable_values,
    undeclared,
    unsayable,
)
from runners.simulated_acceptance import SIMULATE
from search_spaces import Assignment, Scalar, SearchSpace, SpecificationError

SERVERS = ("sglang", "vllm")
"""Engines that live in an environment of the user's own and are asked what they accept."""
OF_SERVERS = ("model", "draft", "engine_python", "base_cmd", "environment")
"""Keys of a study that only mean something with a server. An engine of one's own may have all but the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server as a study will run it: everything but the number of ranks and the device, which the node decides."""

    accepted: EngineOptions
    python: str
    paths: tuple[str, ...]
    """Folders that its Python imports from."""
    space: SearchSpace
    """Its space, as it is without what the study and its base command say."""
    start: Assignment
    """Where the base command starts, for the parameters that it speaks of."""
    pins: Assignment
    """Parameters that the base command sets to something that the space does not have."""
    unavailable: Mapping[str, Mapping[Scalar, str]]
    """Parameter → value → why this version cannot be told it."""
    model: str | None
    """None only where nothing is to be launched."""
    draft_model: str | None
    num_ranks: int | None
    """Tensor-parallel size, where the study or its base command names one."""
    options: Mapping[str, Scalar]
    variables: Mapping[str, str]
    notes: tuple[str, ...] = ()
    """What the user should know before the search begins, one sentence each."""

    @property
    def facts(self) -> dict[str, object]:
        """The facts that a change of engine or model changes."""
        named = {"model": self.model, "draft_model": self.draft_model}
        version = {"engine_version": f"{self.accepted.engine} {self.accepted.version}"}
        known = {name: value for name, value in named.items() if value is not None}
        return {**version, **known, **model_facts(self.model, self.draft_model)}


def with_engine_of_command(spec: StudySpec) -> StudySpec:
    """Return the study with the engine that its base command starts, where it names none itself.

    Raises:
        UsageError, SpecificationError: the command starts no engine known here.
    """
    if spec.base_cmd is None or "engine" in spec.model_fields_set:
        return spec
    try:
        return spec.model_copy(update={"engine": started_engine(spec.base_cmd)[0]})
    except SpecificationError as error:
        raise spec.error(error.problem, "base_cmd") from error


def asked_server(spec: StudySpec, environment: Mapping[str, str], *, needs_model: bool = True) -> Server | None:
    """Return the server of a study, or None where its engine is none that is asked.

    Args:
        spec: The study.
        environment: The user's environment.
        needs_model: False where nothing is to be launched.

    Raises:
        UsageError, SpecificationError: what is missing or wrong, and what to do.
    """
    if spec.engine not in SERVERS:
        for key in ("base_cmd",) if ":" in spec.engine else OF_SERVERS:
            if getattr(spec, key):
                raise spec.error(f"this is for servers, and {spec.engine} is none: add --engine sglang or vllm", key)
        return None
    space = named_space(spec)
    if space.engine != spec.engine:
        raise spec.error(f"this is a search space of {space.engine}, not of {spec.engine}", "space")
    shown = _command_of(spec)
    everything = {**environment, **spec.environment}
    python, accepted = ask_installed(spec, spec.engine, shown, everything)
    base = _base_command(spec, space, accepted)
    unavailable = unavailable_values(space, accepted)
    options = {**base.options, **_own_options(spec)}
    variables = {**base.variables, **spec.environment}
    _check_sayable(spec, options, accepted)
    model = model_place(spec, "model", spec.model or base.model)
    if model is None and needs_model:
        raise spec.error(f"{spec.engine} serves a model: give its folder or its name on a hub", "model")
    draft = model_place(spec, "draft", spec.draft or base.draft_model)
    return Server(
        accepted=accepted,
        python=python,
        paths=ask_python(python, everything).paths,
        space=space,
        start=base.assignment,
        pins=base.pins,
        unavailable=unavailable,
        model=model,
        draft_model=draft,
        num_ranks=spec.tp or base.num_ranks,
        options=options,
        variables=variables,
        notes=(*_notes(spec, space, base, shown, draft), *_doubts(variables, accepted)),
    )


def check_fixed(spec: StudySpec, settings: EngineSettings, space: SearchSpace) -> None:
    """Raise what is wrong with an option or variable that is fixed although the search tunes it."""
    for target, parameter in fixed_and_tuned(settings, space).items():
        key, written = _written(spec, target)
        silent = space.parameters[parameter].unset
        pin = f"--pin {parameter}={silent}" if silent is not None else f"a space without {parameter}"
        raise spec.error(
            f"the search tunes it as {parameter}: leave it away, or keep it fixed with {pin}", key, *written
        )


def _command_of(spec: StudySpec) -> str | None:
    """Return the Python that the base command shows."""
    try:
        return started_engine(spec.base_cmd)[1] if spec.base_cmd is not None else None
    except SpecificationError as error:
        raise spec.error(error.problem, "base_cmd") from error


def _base_command(spec: StudySpec, space: SearchSpace, accepted: EngineOptions) -> BaseCommand:
    """Return the base command taken apart; without one, one that says nothing."""
    if spec.base_cmd is None:
        return BaseCommand(
            engine=spec.engine,
            options={},
            variables={},
            assignment={},
            model=None,
            draft_model=None,
            num_ranks=None,
            python=None,
        )
    try:
        return split_base_command(spec.base_cmd, space, accepted)
    except SpecificationError as error:
        raise spec.error(error.problem, "base_cmd") from error


def _own_options(spec: StudySpec) -> dict[str, Scalar]:
    """Return the options of the study, without those that have a key of their own."""
    options = dict(spec.options)
    for name in options:
        key = own_key(spec.engine, name)
        if key == "":
            raise spec.error("the agent chooses it: leave it away", "options", name)
        if key is not None:
            raise spec.error(f"say it with --{key}, or with `{key}:` in a file", "options", name)
    if SIMULATE in options:
        options[SIMULATE] = _length(spec, options[SIMULATE])
    return options


def _length(spec: StudySpec, value: Scalar) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise spec.error(f"{value!r} is no number of tokens for each verify pass", "options", SIMULATE) from error


def _check_sayable(spec: StudySpec, options: Mapping[str, Scalar], accepted: EngineOptions) -> None:
    engines_own = {name: value for name, value in options.items() if name != SIMULATE}
    for name, why in unsayable(engines_own, accepted).items():
        key, written = _written(spec, name)
        raise spec.error(why.removeprefix("error: "), key, *written)


def _written(spec: StudySpec, target: str) -> tuple[str, Sequence[str]]:
    """Return the key under which an option or variable was written, and its name there."""
    for name in spec.options:
        if name == target or name.partition(".")[0] == target.partition(".")[0]:
            return "options", (name,)
    return ("environment", (target,)) if target in spec.environment else ("base_cmd", ())


def _notes(
    spec: StudySpec, space: SearchSpace, base: BaseCommand, shown: str | None, draft: str | None
) -> Iterator[str]:
    replaced = None if spec.engine_python is None else f" is {shown} here"
    yield from (note for note in base.notes if replaced is None or replaced not in note)
    if draft is None and not set(space.parameters) & set(DRAFT_PARAMETERS):
        yield "no draft model: methods of speculation that need one are not launched; --draft names one"
    elif draft is not None and "draft_method" not in model_facts(None, draft):
        yield f"what {draft} is a draft for is not known: the search begins without speculation"


def _doubts(variables: Mapping[str, str], accepted: EngineOptions) -> Iterator[str]:
    for why in undeclared(variables, accepted).values():
        yield f"{why.removeprefix('error: ')} It is set all the same"
