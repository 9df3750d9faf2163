"""What an engine shows of its resolved arguments → the parameters that it replaced without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.store.trial import Work
from runners import EffectProof, RunRecord
from search_spaces import Parameter, Scalar, SearchSpace


def with_replaced(record: RunRecord, work: Work, space: SearchSpace) -> RunRecord:
    """Return the record with a proof for every parameter whose resolved options say another one of its values.

    That an option kept its value proves nothing: what takes effect only a launch shows.
    """
    if record.shown is None:
        return record
    found = tuple(_replaced(work, record.shown.options, space))
    return record.model_copy(update={"effects": (*record.effects, *found)}) if found else record


def _replaced(work: Work, shown: Mapping[str, Scalar], space: SearchSpace) -> Iterator[EffectProof]:
    for name, parameter in space.parameters.items():
        asked = work.resolved[name]
        said = parameter.switches_of(asked).flags
        if not said or not all(flag in shown for flag in said) or _agrees(parameter, asked, shown):
            continue
        resolved = {flag: shown[flag] for flag in said}
        for value in parameter.domain:
            if set(parameter.switches_of(value).flags) == set(said) and _agrees(parameter, value, shown):
                words = " ".join(f"{flag}={text}" for flag, text in resolved.items())
                yield EffectProof(parameter=name, requested=asked, effective=value, evidence=f"resolved to {words}")


def _agrees(parameter: Parameter, value: Scalar, shown: Mapping[str, Scalar]) -> bool:
    return all(_is_same(text, shown[flag]) for flag, text in parameter.switches_of(value).flags.items())


def _is_same(said: Scalar, shown: Scalar) -> bool:
    try:
        return float(said) == float(shown)
    except ValueError:
        return str(said).lower() == str(shown).lower()
