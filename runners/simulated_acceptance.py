"""Simulated acceptance of drafts: a switch for tests of an engine, which must never slip into a real measurement.

With SGLang's SGLANG_SIMULATE_ACC_* variables or vLLM's synthetic rejection sampling, a server reports whatever
acceptance it was told, so every figure of speculation is made up. A full trial with such a switch is refused, unless
the study says so itself: the option `simulate_acceptance: LENGTH` sets the engine's own switch, and every record then
carries it, as an effect and as a figure of its measurement.
Source: SGLang 0.5.16 to 0.5.23 environ.py; vLLM 0.32 config/speculative.py, rejection_sample_method.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from runners.contract import Command, EffectProof, EngineSettings, Measurement, TrialRequest
from search_spaces import Scalar

SIMULATE = "simulate_acceptance"
"""The option: tokens for each verify pass, the one that is never drafted included."""
FIGURE = "simulated_acceptance_length"
SGLANG_PREFIX = "SGLANG_SIMULATE_ACC"
VLLM_MARKS = ("synthetic_acceptance", '"synthetic"', "'synthetic'")
_SPECULATION = "--speculative-config"


class SimulatedAcceptanceError(ValueError):
    """Simulated acceptance where it must not be, or with a length that is none."""


@dataclass(frozen=True, slots=True)
class SimulatedAcceptance:
    """What a request says about simulated acceptance."""

    request: TrialRequest
    """The request without the option, which is no flag of any engine."""
    length: float | None

    @property
    def proofs(self) -> tuple[EffectProof, ...]:
        """Return the label of a record: none without simulation."""
        if self.length is None:
            return ()
        evidence = "set by the study's own option; figures of speculation are not real"
        return (EffectProof(parameter=SIMULATE, requested=self.length, effective=self.length, evidence=evidence),)

    def labelled(self, measurement: Measurement | None) -> Measurement | None:
        """Return the measurement with the simulated length among its figures."""
        if measurement is None or self.length is None:
            return measurement
        return measurement.model_copy(update={"extra": {**measurement.extra, FIGURE: self.length}})

    def applied_to(self, command: Command, engine: str) -> Command:
        """Return the command with the engine's own switch, where the study asked for it."""
        if self.length is None:
            return command
        if engine == "sglang":
            return command.model_copy(update={"env": {**command.env, f"{SGLANG_PREFIX}_LEN": str(self.length)}})
        return command.model_copy(update={"argv": tuple(_with_synthetic(command.argv, self.length))})


def simulated_acceptance(request: TrialRequest) -> SimulatedAcceptance:
    """Return what the request says.

    Raises:
        SimulatedAcceptanceError: a switch of the engine is set without the study's option.
    """
    options = dict(request.settings.options)
    wanted = options.pop(SIMULATE, None)
    bare = request.model_copy(update={"settings": request.settings.model_copy(update={"options": options})})
    if wanted is None:
        _refuse_switches(request)
        return SimulatedAcceptance(bare, None)
    if isinstance(wanted, bool | str) or wanted < 1:
        raise SimulatedAcceptanceError(f"option {SIMULATE}={wanted}: expected tokens for each verify pass, 1 or more")
    return SimulatedAcceptance(bare, float(wanted))


def simulated_length(settings: EngineSettings) -> float | None:
    """Return the acceptance length that a study of these settings pretends, or None where it measures a real one."""
    wanted = settings.options.get(SIMULATE)
    return float(wanted) if isinstance(wanted, int | float) and not isinstance(wanted, bool) else None


def _refuse_switches(request: TrialRequest) -> None:
    variables = {**request.environment, **request.settings.variables, **request.variables}
    named = [f"{name}={text}" for name, text in variables.items() if name.startswith(SGLANG_PREFIX)]
    texts: dict[str, Scalar] = {**request.settings.options, **request.options}
    named += [f"--{name}" for name, text in texts.items() if _is_synthetic(str(text))]
    if named:
        raise SimulatedAcceptanceError(
            f"{', '.join(named)}: simulated acceptance is refused in a full trial, since its figures are not real. "
            f"Unset it, or give the study the option {SIMULATE}=LENGTH to test an engine with it"
        )


def _is_synthetic(text: str) -> bool:
    return any(mark in text for mark in VLLM_MARKS)


def _with_synthetic(argv: Iterable[str], length: float) -> Iterable[str]:
    """Yield the arguments with the switch inside the JSON of `--speculative-config`."""
    is_next = False
    for argument in argv:
        name, _, text = argument.partition("=")
        if is_next:
            yield _synthetic(argument, length)
        elif name == _SPECULATION and text:
            yield f"{name}={_synthetic(text, length)}"
        else:
            yield argument
        is_next = argument == _SPECULATION


def _synthetic(text: str, length: float) -> str:
    switches = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": length}
    return json.dumps({**json.loads(text), **switches})
