"""The best configuration in the form in which somebody takes it away: a script, variables, a container, a document.

Each form is a function from a `Takeaway` to a text; none of them contains a secret. A secret stands as a reference that
the reader's shell, Compose or Kubernetes fills in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.export.containers import as_compose, as_kubernetes
from agent.export.documents import as_json, as_yaml
from agent.export.shell import as_env_file, as_script
from agent.export.takeaway import Takeaway, takeaway

__all__ = ["FORMATS", "Takeaway", "export", "takeaway"]

FORMATS: Mapping[str, Callable[[Takeaway], str]] = {
    "sh": as_script,
    "env": as_env_file,
    "yaml": as_yaml,
    "compose": as_compose,
    "k8s": as_kubernetes,
    "json": as_json,
}


def export(taken: Takeaway, form: str) -> str:
    """Return what is taken away in one of `FORMATS`, ending in a line break.

    Raises:
        UsageError: that form needs something (a container image) which nobody has named.
    """
    return FORMATS[form](taken)
