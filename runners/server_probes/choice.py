"""Which collective a server's settings select, in the words of the probe server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from search_spaces import Scalar

FORBIDDEN = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""What a user says who wants no NVLink multicast on a node. A probe that selects it is then not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What sums in a launch with these settings."""

    chain: tuple[str, ...] = ()
    """The collective, and what the engine puts in its place where it switches itself off; empty: it is not probed."""
    not_probed: str = ""
    """Why it is not probed."""
    needs_multicast: bool = False
    """Whether it uses NVLink multicast because of these settings."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the engine itself puts into the environment of its ranks, where nobody else has said it."""
    forced: tuple[str, ...] = ()
    """Those of them that it sets whatever anybody has said."""
    note: str = ""
    """What the probe leaves out, for the reader."""

    def on(self, environment: Mapping[str, str]) -> Choice:
        """Return the choice as it stands in a user's environment, which may forbid multicast."""
        forbidding = [f"{name}={text}" for name, text in FORBIDDEN.items() if environment.get(name) == text]
        if not (self.needs_multicast and forbidding):
            return self
        return Choice(
            not_probed=f"it uses NVLink multicast, and the environment forbids that ({', '.join(forbidding)})"
        )


def is_on(named: Mapping[str, Scalar], option: str) -> bool:
    """Return whether a switch is given, whether as a bare flag or as text."""
    return str(named.get(option, False)).lower() not in ("false", "0", "none")


def count(named: Mapping[str, Scalar], option: str, otherwise: int) -> int:
    """Return a whole number that an option is given, or `otherwise` where it is not, or is no number."""
    text = str(named.get(option, ""))
    return int(text) if text.isdigit() else otherwise
