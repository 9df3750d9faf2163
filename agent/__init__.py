"""WHY: what to run next, what a trial means, what is remembered. `from agent import search` is `agent search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.found import Found

__all__ = ["search"]


def search(home: str | None = None, **spec: object) -> Found:
    """Run a search, as `agent search` does, and return what it found.

    Example: `found = search(engine="replay", node="pcie8-blackwell-cuda128", budget=20); found.best, found.dead_ends`

    Args:
        home: State folder; by default AGENT_HOME or ./agent-state.
        spec: Keys of study.yaml, for example `budget=40, tp=2, pin={"allreduce": "nccl"}`.

    Raises:
        AgentError, SpecificationError: what the command would print.
    """
    from rich.console import Console

    from agent.found import Found
    from agent.home import Home
    from agent.private_files import private_files
    from agent.spec import load_spec
    from agent.studies import make_plan, start

    place = Home.find(home)
    console = Console(markup=False, emoji=False, highlight=False)
    with private_files():
        return Found(start(make_plan(load_spec(None, spec), place), place, console))
