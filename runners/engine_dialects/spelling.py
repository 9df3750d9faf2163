"""One name for each option in our spaces → what each version of an engine calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runners.engine_dialects.engine_options import EngineOptions
from search_spaces import Scalar, nearest

VALUE = "\0value"
"""Stands for the value that was asked for, in the options of a way."""


class OptionNotInVersionError(ValueError):
    """This version of the engine has no way to say an option. The text reads like the engine's own refusal."""


@dataclass(frozen=True)
class Way:
    """One way to say an option: it holds where the version has every option that it takes."""

    options: Mapping[str, Scalar]
    """Long option → VALUE, a fixed text, or True for a bare flag. Empty: nothing needs to be said."""
    values: tuple[str, ...] | None = None
    """The values that can be said this way; None for all."""
    before: tuple[int, ...] | None = None
    """The first release for which this way is wrong; None for ever."""


Dialect = Mapping[str, tuple[Way, ...]]
"""Our name → ways to say it, best first. An option that is not listed has one name in all versions."""


def spell(name: str, value: Scalar, dialect: Dialect, accepted: EngineOptions) -> dict[str, Scalar]:
    """Return the options that say `name` = `value` in this version.

    Raises:
        OptionNotInVersionError: when it cannot be said.
    """
    for way in dialect.get(name, (Way({name: True if value is True else VALUE}),)):
        if way.values is not None and str(value) not in way.values:
            continue
        if way.before is not None and accepted.release >= way.before:
            continue
        said = {option: value if text == VALUE else text for option, text in way.options.items()}
        if all(_accepts(accepted, option, text) for option, text in said.items()):
            return said
    raise OptionNotInVersionError(_refusal(name, value, accepted))


def check_variables(variables: Mapping[str, str], accepted: EngineOptions) -> None:
    """Raise OptionNotInVersionError for a variable of the engine's own that this version does not read.

    It would be ignored without a word, and the trial would measure something else than its name says. Switching off
    (`0`) what a version does not have is fine.
    """
    prefix = accepted.engine.upper() + "_"
    for name, text in variables.items():
        if accepted.variables and name.startswith(prefix) and text != "0" and name not in accepted.variables:
            hint = nearest(name, accepted.variables)
            raise OptionNotInVersionError(
                f"error: {accepted.engine} {accepted.version} does not read the environment variable {name}. {hint}"
            )


def _accepts(accepted: EngineOptions, name: str, value: Scalar) -> bool:
    option = accepted.option(name.partition(".")[0])
    if option is None or "." in name:  # what stands inside a JSON object, only the engine itself can judge
        return option is not None
    if option.kind != "optional" and (value is True) != (option.kind == "flag"):
        return False
    return not option.choices or value is True or str(value) in option.choices


def _refusal(name: str, value: Scalar, accepted: EngineOptions) -> str:
    base, version = name.partition(".")[0], f"{accepted.engine} {accepted.version}"
    known = accepted.option(base)
    if known is None:
        what = f"error: unrecognized arguments: --{name}" + ("" if value is True else f" {value}")
        return f"{what} ({version} has no such option). {nearest(base, accepted.options)}"
    if known.kind == "flag":
        return f"error: argument --{name}: takes no value in {version}, found '{value}'"
    if value is True:
        return f"error: argument --{name}: needs a value in {version}"
    return f"error: argument --{name}: invalid choice: '{value}' (choose from {', '.join(known.choices)}) in {version}"
