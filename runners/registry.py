"""Engine name → runner. A runner is imported only when it is asked for, so that start-up stays light."""

from __future__ import annotations

import importlib

from runners.contract import Runner

BUILT_IN = {
    "replay": "runners.replay_runner:ReplayRunner",
    "sglang": "runners.sglang_runner:SglangRunner",
    "torch": "runners.torch_runner:TorchRunner",
    "vllm": "runners.vllm_runner:VllmRunner",
}


MEMBERS = ("name", "rungs", "resolve", "command", "run", "run_probes")
"""What an engine must have. Source: `runners.contract.Runner`."""


class UnknownEngineError(ValueError):
    """No engine of that name; the text lists the known ones."""


def make_runner(engine: str) -> Runner:
    """Return the runner of a built-in engine, or of `package.module:Class` for an engine of one's own.

    Raises:
        UnknownEngineError: when there is no such engine or it cannot be imported.
    """
    target = BUILT_IN.get(engine, engine)
    module_name, _, attribute = target.partition(":")
    if not attribute:
        raise UnknownEngineError(
            f"no engine '{engine}'. Known: {', '.join(sorted(BUILT_IN))}; "
            "an engine of your own is 'package.module:Class'."
        )
    try:
        kind = getattr(importlib.import_module(module_name), attribute)
        runner: Runner = kind()
    except (ImportError, AttributeError, TypeError, ValueError, SyntaxError) as error:
        raise UnknownEngineError(f"engine '{engine}' cannot be loaded: {error}.") from error
    if missing := [name for name in MEMBERS if not hasattr(runner, name)]:
        raise UnknownEngineError(f"engine '{engine}' is no engine: it lacks {', '.join(missing)}.")
    return runner
