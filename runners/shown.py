"""What an engine shows of the arguments that it resolved, without a launch."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from runners.frozen import Frozen
from search_spaces import Scalar


class Shown(Frozen):
    """The resolved arguments of one launch, in the words of its request."""

    options: Mapping[str, Scalar] = Field(default_factory=dict)
    """Option of the request (long name without dashes) → the value that the engine shows, a list as text with spaces.
    Options that it does not show are left out."""
    fingerprint: str = ""
    """Key of everything that was resolved, with the variables of the launch: equal for two launches that are one."""
