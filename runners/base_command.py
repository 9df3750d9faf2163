"""What the user already runs → fixed options, fixed variables, and the point of the space it stands for.

The text is split as a shell would, but never given to one: pipes, variables and substitutions are refused.

How an option that a parameter speaks for is taken:

* all of a value's switches are there: the parameter starts at that value;
* only some of them (`--disable-custom-all-reduce` alone): at the value that says them and the least beside them; the
  notes tell what it says beside them;
* something no value says (`--mem-fraction-static 0.83`): the options stay fixed, and the parameter is pinned to its
  "say nothing" value. A parameter that has none cannot be left alone: that is an error.

Everything else stays fixed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from runners.contract import Frozen
from runners.engine_dialects.command import DIALECTS, canonical
from runners.engine_dialects.engine_options import EngineOptions
from search_spaces import Assignment, Parameter, Scalar, SearchSpace, SpecificationError, Switches

MODULES = {
    "sglang.launch_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
}
KEY = "base_cmd"
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"-{1,2}[A-Za-z]")
_SHELL = re.compile(r"^(?:&&|\|\|?|;|>>?|<|&|2>&1)$|\$[A-Za-z_({]|`")
_PYTHON = re.compile(r"python[0-9.]*$")


class BaseCommand(Frozen):
    """A command line, taken apart."""

    engine: str
    options: Mapping[str, Scalar]
    """What stays fixed: long option in our names → text, or true for a bare flag."""
    variables: Mapping[str, str]
    """What stays fixed in the environment."""
    assignment: Assignment
    """Where the search starts, for the parameters that the command speaks of."""
    pins: Assignment = Field(default_factory=dict)
    """Parameters that the command sets to something the space does not have, at the value that leaves them alone."""
    model: str | None
    draft_model: str | None
    num_ranks: int | None
    """Tensor-parallel size; None where the command does not say."""
    python: str | None
    """Python of the engine's environment; None where the command does not show it."""
    notes: tuple[str, ...] = ()
    """What the user should know about how the command was taken, one sentence each."""


def split_base_command(
    command: str | Sequence[str], space: SearchSpace, accepted: EngineOptions | None = None
) -> BaseCommand:
    """Take a command apart.

    Args:
        command: As typed, or as an argument list.
        space: The study's space; its engine must be the command's.
        accepted: What the engine accepts, where that is known: it tells a bare flag from an option with a value.

    Raises:
        SpecificationError: it is no command of that engine, or says what the space cannot.
    """
    words = _words(command)
    variables, words = _leading_variables(words)
    engine, python, arguments = _program(words)
    if engine != space.engine:
        raise _error(f"this starts {engine}, but the search space is that of {space.engine}: give --engine {engine}")
    dialect = DIALECTS[engine]
    given = canonical(engine, _options(engine, arguments, accepted))
    notes = (
        [] if python in (None, *words) else [f"'{words[0]}' is {python} here: name another Python if it is not yours"]
    )
    notes += [f"--{name} is chosen by the agent" for name in dialect.CHOSEN_BY_US if given.pop(name, None) is not None]
    model = _text(given.pop(dialect.MODEL, None))
    draft, ranks = _text(given.pop(dialect.DRAFT, None)), _count(given.pop(dialect.TP_SIZE, None))
    if draft is not None and "speculative-config.num_speculative_tokens" in given and dialect.METHOD not in given:
        raise _error('--speculative-config names a draft but no method: add "method", such as "eagle3"')
    found: dict[str, Assignment] = {"assignment": {}, "pins": {}}
    overlapped = {flag for option, flag in dialect.OVERLAPS.items() if option in given}
    for name, parameter in space.parameters.items():
        if parameter.flag in overlapped and parameter.unset is not None:
            found["pins"][name] = parameter.unset
            notes.append(f"the command fixes the sizes that {name} is about: {name} is not searched")
        else:
            _take(name, parameter, given, variables, found, notes)
    return BaseCommand(
        engine=engine,
        options=given,
        variables=variables,
        **found,
        model=model,
        draft_model=draft,
        num_ranks=ranks,
        python=python,
        notes=tuple(notes),
    )


def started_engine(command: str | Sequence[str]) -> tuple[str, str | None]:
    """Return the engine that a command starts, and the Python of its environment where the command shows it.

    Raises:
        SpecificationError: it starts no engine known here.
    """
    engine, python, _ = _program(_leading_variables(_words(command))[1])
    return engine, python


def _words(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    try:
        words = shlex.split(command.replace("\\\n", " "), comments=False)
    except ValueError as error:
        raise _error(f"it cannot be split into words: {error}") from error
    for word in words:
        if _SHELL.search(word):
            raise _error(f"'{word}' needs a shell, and none is used here: write its result, one command only")
    return words


def _leading_variables(words: list[str]) -> tuple[dict[str, str], list[str]]:
    variables: dict[str, str] = {}
    while words and (words[0] in ("env", "exec") or _VARIABLE.fullmatch(words[0])):
        if (found := _VARIABLE.fullmatch(words[0])) is not None:
            variables[found[1]] = found[2]
        words = words[1:]
    return variables, words


def _program(words: list[str]) -> tuple[str, str | None, list[str]]:
    """Return engine, Python, and the arguments behind the program."""
    name = Path(words[0]).name if words else ""
    if _PYTHON.fullmatch(name) and "-m" in words and len(words) > words.index("-m") + 1:
        place = words.index("-m") + 1
        engine = MODULES.get(words[place])
        if engine is not None:
            rest = words[place + 1 :]
            return engine, shutil.which(words[0]) or words[0], rest[1:] if rest[:1] == ["serve"] else rest
    if name in DIALECTS and words[1:2] == ["serve"]:
        return name, _sibling_python(words[0]), words[2:]
    raise _error(
        f"'{' '.join(words[:3]) or 'nothing'}' starts no engine known here: begin with `vllm serve MODEL`, "
        "`sglang serve MODEL`, `python -m sglang.launch_server` or `python -m vllm.entrypoints.openai.api_server`"
    )


def _sibling_python(script: str) -> str | None:
    """The Python beside a console script, which is the one it runs in."""
    found = shutil.which(script)
    beside = Path(found).parent / "python" if found else None
    return str(beside) if beside is not None and beside.exists() else None


def _options(engine: str, words: list[str], accepted: EngineOptions | None) -> dict[str, Scalar]:
    """Return the options as written: an option takes the words up to the next one, and none of them if it is a flag."""
    options: dict[str, Scalar] = {}
    model_option = DIALECTS[engine].MODEL
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not _OPTION.match(word):
            if model_option in options:
                raise _error(f"'{word}' stands alone: which option is it for?")
            options[model_option] = word
            continue
        name, _, text = word.partition("=")
        name = _long_name(engine, name)
        if text or "=" in word:
            options[name] = text
            continue
        known = accepted.option(name.partition(".")[0]) if accepted else None
        most = {"flag": 0, "value": 1, "optional": 1}.get(known.kind, len(words)) if known else len(words)
        values: list[str] = []
        while index < len(words) and not _OPTION.match(words[index]) and len(values) < most:
            values.append(words[index])
            index += 1
        options[name] = " ".join(values) if values else True
    return options


def _long_name(engine: str, written: str) -> str:
    name = written.lstrip("-")
    base, dot, keys = name.partition(".")
    if not written.startswith("--"):
        short = DIALECTS[engine].SHORT_OPTIONS
        if base[:1] == "O" and base[1:].isdigit():
            raise _error(f"write {written} as --optimization-level {base[1:]}")
        if base not in short:
            raise _error(f"'{written}' is no option known here: write its long form")
        base = short[base]
    return base.replace("_", "-") + dot + keys


def _take(
    name: str,
    parameter: Parameter,
    given: dict[str, Scalar],
    variables: dict[str, str],
    found: dict[str, Assignment],
    notes: list[str],
) -> None:
    """Move what the parameter speaks for out of the fixed options into the assignment."""
    own = Switches(
        flags={flag: given[flag] for flag in parameter.flag_names if flag in given},
        env={variable: variables[variable] for variable in parameter.env_names if variable in variables},
    )
    if not own.flags and not own.env:
        return
    fitting = [value for value in parameter.domain if _says(parameter.switches_of(value), own)]
    if not fitting:
        if parameter.unset is None:
            shown = ", ".join(str(value) for value in parameter.domain)
            raise _error(f"{_shown(own)} is none of the values of {name}: {shown}. Give a space of your own with it")
        found["pins"][name] = parameter.unset
        notes.append(f"{_shown(own)} is none of the values of {name}: it stays fixed, and {name} is not searched")
        return
    value = min(fitting, key=lambda each: _size(parameter.switches_of(each)))
    beside = _without(parameter.switches_of(value), own)
    if beside.flags or beside.env:
        notes.append(f"{_shown(own)} is taken as {name}={value}, which also says {_shown(beside)}")
    found["assignment"][name] = value
    for flag in own.flags:
        del given[flag]
    for variable in own.env:
        del variables[variable]


def _says(switches: Switches, own: Switches) -> bool:
    """Whether the switches say everything that the command says about the parameter."""
    flags = all(flag in switches.flags and _same(switches.flags[flag], text) for flag, text in own.flags.items())
    return flags and all(switches.env.get(name) == text for name, text in own.env.items())


def _same(one: Scalar, other: Scalar) -> bool:
    """Whether two texts mean the same value: 0.80 and 0.8, true and True."""
    texts = [str(value).lower() for value in (one, other)]
    if texts[0] == texts[1]:
        return True
    try:
        numbers = [json.loads(text) for text in texts]
    except ValueError:
        return False
    return bool(numbers[0] == numbers[1]) and not any(isinstance(number, bool) for number in numbers)


def _without(switches: Switches, own: Switches) -> Switches:
    return Switches(
        flags={flag: text for flag, text in switches.flags.items() if flag not in own.flags},
        env={name: text for name, text in switches.env.items() if name not in own.env},
    )


def _size(switches: Switches) -> int:
    return len(switches.flags) + len(switches.env)


def _shown(switches: Switches) -> str:
    flags = [f"--{flag}" if text is True else f"--{flag} {text}" for flag, text in switches.flags.items()]
    return " ".join([*(f"{name}={text}" for name, text in switches.env.items()), *flags])


def _text(value: Scalar | None) -> str | None:
    return None if value is None or value is True else str(value)


def _count(value: Scalar | None) -> int | None:
    if value is None:
        return None
    if not str(value).isdigit() or int(str(value)) < 1:
        raise _error(f"the tensor-parallel size must be a number of ranks, not {value!r}")
    return int(str(value))


def _error(problem: str) -> SpecificationError:
    return SpecificationError(problem, key=KEY)
