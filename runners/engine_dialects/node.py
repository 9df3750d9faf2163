"""What the facts of a node say about collectives, and a small builder of resolutions."""

from __future__ import annotations

import re

from runners.contract import EngineSettings, Resolution, Rewrite
from search_spaces import Assignment, Facts, Scalar

FUSION_ARCHITECTURES = (9, 10)
"""Majors of the compute capability that FlashInfer's fused all-reduce is built for."""

RANK_PARAMETERS = ("tensor_parallel_size", "tp_size", "tp")
"""Names that a space of the user's own may give to the tensor-parallel size."""
DRAFT_PARAMETERS = ("draft", "draft_model", "speculative_draft_model_path")
"""Names that a space of the user's own may give to a choice of drafts."""
DRAFT_OPTIONS = ("speculative-draft-model-path", "speculative-draft-model", "speculative-config.model", "spec-model")


def arch_majors(facts: Facts) -> tuple[int, ...]:
    """Return the majors of the GPUs' compute capabilities, (9,) for `sm_90`; empty when they are not known."""
    return tuple(int(found[1]) for found in re.finditer(r"sm_(\d+)\d\b", str(facts.get("gpu_arch") or "")))


def arch_names(facts: Facts) -> tuple[str, ...]:
    """Return the GPUs' compute capabilities, ("9.0",) for `sm_90`; empty when they are not known."""
    return tuple(f"{found[1]}.{found[2]}" for found in re.finditer(r"sm_(\d+)(\d)\b", str(facts.get("gpu_arch") or "")))


def has_nvlink_mesh(facts: Facts, num_ranks: int) -> bool | None:
    """Return whether NVLink joins every pair of the first `num_ranks` GPUs; None when the links are not known."""
    links = facts.get("links")
    if not isinstance(links, list | tuple) or len(links) < num_ranks:
        return None
    kinds = [kind for row in links[:num_ranks] for kind in str(row).split()[:num_ranks] if kind != "X"]
    if not kinds or "?" in kinds:
        return None
    return all(kind.startswith("NV") for kind in kinds)


def ranks_of(assignment: Assignment, settings: EngineSettings) -> int:
    """Return the tensor-parallel size of a launch: a parameter's where a space of the user's own tunes it."""
    for name in RANK_PARAMETERS:
        value = assignment.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return settings.num_ranks


class Resolving:
    """An assignment on its way to what the engine really runs; parameters that the space does not have are left out."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = dict(assignment)
        self._requested = dict(assignment)
        self._why: dict[str, str] = {}
        self._error: str | None = None

    def get(self, name: str) -> Scalar | None:
        """Return the value that stands now, or None where the space has no such parameter."""
        return self.assignment.get(name)

    def set(self, name: str, value: Scalar, why: str) -> None:
        """Replace a value, for a reason that is told to the user; nothing happens where it stands already."""
        if name in self.assignment and self.assignment[name] != value:
            self.assignment[name] = value
            self._why[name] = why

    def refuse(self, why: str) -> None:
        """Say that the engine would not start; the first reason counts."""
        self._error = self._error or why

    def resolution(self) -> Resolution:
        """Return what was found out."""
        rewrites = tuple(
            Rewrite(parameter=name, requested=self._requested[name], resolved=self.assignment[name], why=why)
            for name, why in self._why.items()
            if self.assignment[name] != self._requested[name]
        )
        return Resolution(assignment=self.assignment, rewrites=rewrites, error=self._error)


def check_draft(
    resolving: Resolving, method: str, needs: tuple[str, ...], settings: EngineSettings, facts: Facts
) -> None:
    """Refuse a method whose draft is missing or was made for another method.

    Nothing is refused where the draft itself is a parameter or a fixed option: what it was made for is not known then.

    Args:
        resolving: Where the refusal goes.
        method: The method, as the engine calls it.
        needs: What its draft may be for (fact `draft_method`); empty when it needs none.
        settings: The study's, with the draft that it names.
        facts: `draft_method` of that draft, and `model_drafts` (the model has prediction layers of its own).
    """
    is_elsewhere = any(name in resolving.assignment for name in DRAFT_PARAMETERS) or any(
        name in DRAFT_OPTIONS or name == "speculative-config" for name in settings.options
    )
    if not needs or is_elsewhere:
        return
    made_for = facts.get("draft_method")
    if settings.draft_model is None and not ("mtp" in needs and facts.get("model_drafts") is not False):
        resolving.refuse(f"{method} needs a draft model, and the study names none")
    elif settings.draft_model is not None and made_for is not None and made_for not in needs:
        resolving.refuse(f"{method} needs a draft made for {' or '.join(needs)}; the study's is one for {made_for}")
