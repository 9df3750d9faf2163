"""A request and an engine version → the exact command: an argument list and variables, never a shell line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType

from runners.contract import Command, EngineSettings, TrialRequest
from runners.engine_dialects import sglang_dialect, vllm_dialect
from runners.engine_dialects.engine_options import EngineOptions
from runners.engine_dialects.spelling import OptionNotInVersionError, check_variables, spell
from search_spaces import Scalar, SearchSpace

DIALECTS: Mapping[str, ModuleType] = {"sglang": sglang_dialect, "vllm": vllm_dialect}
JSON_OPTIONS = ("speculative-config", "compilation-config")
"""Options that take a JSON object, which our names address by dots."""


class CommandNotPossibleError(ValueError):
    """The command cannot be built: something is missing in the settings. The text says what."""


def build_command(
    request: TrialRequest,
    accepted: EngineOptions,
    *,
    host: str,
    port: int,
    extra: Mapping[str, Scalar] | None = None,
) -> Command:
    """Return how the server of a request is started.

    What the assignment says goes before what `settings.options` fixes.

    Args:
        request: The launch; `settings.engine` is `sglang` or `vllm`.
        accepted: What the installed version accepts.
        host: Address to listen on.
        port: Port to listen on.
        extra: More options in our names, such as `nccl-port`; left away where the version has none of that name.

    Raises:
        OptionNotInVersionError: this version cannot be told what the assignment or the fixed options say.
        CommandNotPossibleError: the settings name no model.
    """
    settings = request.settings
    if not settings.model:
        raise CommandNotPossibleError(f"engine {accepted.engine} needs a model: give its path or name")
    dialect = DIALECTS[accepted.engine]
    named = dialect.complete({**canonical(accepted.engine, settings.options), **request.options})
    named = {**dialect.launch_options(settings, named, request.workload.seed, accepted), **named}
    named |= {"host": host, "port": port}
    for name, value in (extra or {}).items():
        if name not in named and accepted.option(name):
            named[name] = value
    variables = {**settings.variables, **request.variables}
    check_variables(request.variables, accepted)  # what the user fixed is the user's: engines read undeclared ones too
    argv = (_python(settings), "-m", dialect.MODULE, *_arguments(_spelled(named, accepted), accepted))
    return Command(argv=argv, env=variables)


def canonical(engine: str, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return options in our names, whichever version's spelling they have; JSON objects are taken apart."""
    dialect, found = DIALECTS[engine], dict[str, Scalar]()
    for name, value in options.items():
        known = dialect.ALIASES.get(name, name)
        for part, text in (vllm_dialect.flattened(known, value) if known in JSON_OPTIONS else {known: value}).items():
            found |= dialect.expand(part, text)
    return found


def unavailable_values(space: SearchSpace, accepted: EngineOptions) -> dict[str, dict[Scalar, str]]:
    """Return parameter → value → why this version cannot be told it, for everything a study must leave out."""
    found: dict[str, dict[Scalar, str]] = {}
    for name, parameter in space.parameters.items():
        for value in parameter.domain:
            said = parameter.switches_of(value)
            try:
                check_variables(said.env, accepted)
                for option, text in said.flags.items():
                    spell(*_sayable(accepted.engine, option, text), DIALECTS[accepted.engine].DIALECT, accepted)
            except OptionNotInVersionError as error:
                found.setdefault(name, {})[value] = str(error)
    return found


def unsayable(options: Mapping[str, Scalar], accepted: EngineOptions) -> dict[str, str]:
    """Return fixed option, as it was written → why this version cannot be told it."""
    found: dict[str, str] = {}
    for name, value in options.items():
        named = dict(_sayable(accepted.engine, *item) for item in canonical(accepted.engine, {name: value}).items())
        try:
            _spelled(named, accepted)
        except OptionNotInVersionError as error:
            found[name] = str(error)
    return found


def undeclared(variables: Mapping[str, str], accepted: EngineOptions) -> dict[str, str]:
    """Return fixed variable → what to know about it, where this version declares none of that name.

    It is no error: engines read some variables without declaring them.
    """
    found: dict[str, str] = {}
    for name, text in variables.items():
        try:
            check_variables({name: text}, accepted)
        except OptionNotInVersionError as error:
            found[name] = str(error)
    return found


def own_key(engine: str, option: str) -> str | None:
    """Return the key of a study that says what this option would say, or None for an option of the engine's own.

    An empty key stands for what the agent chooses itself: nobody has to say it.
    """
    dialect = DIALECTS[engine]
    name = dialect.ALIASES.get(option, option)
    if name in dialect.CHOSEN_BY_US:
        return ""
    return {dialect.MODEL: "model", dialect.TP_SIZE: "tp", dialect.DRAFT: "draft"}.get(name)


def spellings(engine: str) -> dict[str, str]:
    """Return every version's spelling → our name, for messages of the engine that name an option.

    Empty for an engine without a dialect.
    """
    dialect = DIALECTS.get(engine)
    if dialect is None:
        return {}
    ways = {option: name for name, ways in dialect.DIALECT.items() for way in reversed(ways) for option in way.options}
    return {**ways, **dialect.OVERLAPS, **dialect.ALIASES}


def fixed_and_tuned(settings: EngineSettings, space: SearchSpace) -> dict[str, str]:
    """Return fixed option or variable → the parameter that sets it too, for what cannot be both.

    A parameter that is narrowed to one value which says nothing leaves the option to the user.
    """
    fixed = set(canonical(space.engine, settings.options)) | set(settings.variables)
    found: dict[str, str] = {}
    for name, parameter in space.parameters.items():
        said = [parameter.switches_of(value) for value in parameter.domain]
        targets = {target for each in said for target in (*each.flags, *each.env)}
        found |= dict.fromkeys(sorted(targets & fixed), name)
    return found


def engine_words(options: Mapping[str, Scalar], accepted: EngineOptions) -> dict[str, str]:
    """Return option in our names → the one option that says it in this version with the same value.

    What takes several options, or another value, has no single word and is left out.
    """
    found: dict[str, str] = {}
    for name, value in options.items():
        try:
            said = spell(name, value, DIALECTS[accepted.engine].DIALECT, accepted)
        except OptionNotInVersionError:
            continue
        if list(said.values()) == [value]:
            found[name] = next(iter(said))
    return found


def _sayable(engine: str, option: str, value: Scalar) -> tuple[str, Scalar]:
    """The one option whose name depends on the rest of the launch, in the form it takes in the end."""
    if engine == "vllm" and option == "cuda-graph-max-bs":
        return "cudagraph-capture-sizes", str(value)
    return option, value


def _python(settings: EngineSettings) -> str:
    return settings.python or sys.executable


def _spelled(named: Mapping[str, Scalar], accepted: EngineOptions) -> dict[str, Scalar]:
    dialect, found = DIALECTS[accepted.engine].DIALECT, dict[str, Scalar]()
    for name, value in named.items():
        meant = _switch(name, value, accepted)
        if meant is not False or "." in name:
            found |= spell(name, meant, dialect, accepted)
    return found


def _switch(name: str, value: Scalar, accepted: EngineOptions) -> Scalar:
    """A switch that the user wrote as text is one; off, it is not said at all."""
    option = accepted.option(name)
    is_switch = option is not None and option.kind == "flag" and str(value).lower() in ("true", "false")
    return str(value).lower() == "true" if is_switch else value


def _arguments(options: Mapping[str, Scalar], accepted: EngineOptions) -> Iterator[str]:
    """Yield the arguments; what stands behind dots is joined into one JSON object for each option."""
    objects: dict[str, dict[str, object]] = {}
    for name, value in options.items():
        base, *keys = name.split(".")
        if keys:
            _put(objects.setdefault(base, {}), keys, value)
            continue
        yield f"--{name}"
        option = accepted.option(name)
        if option is not None and option.kind == "list":
            yield from str(value).split()
        elif value is not True:
            yield str(value)
    for name, content in objects.items():
        yield f"--{name}"
        yield json.dumps(content, sort_keys=True)


def _put(target: dict[str, object], keys: list[str], value: Scalar) -> None:
    for key in keys[:-1]:
        inner = target.setdefault(key, {})
        target = inner if isinstance(inner, dict) else {}
    target[keys[-1]] = _typed(value)


def _typed(value: Scalar) -> object:
    """A number, list or object where the text is one in JSON, else the text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
