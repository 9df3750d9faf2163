"""Named sizes: one for a laptop's cores, one for a GPU, one for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .config import ModelSize


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Default size and workload of a launch; each field can be overridden by its flag."""

    size: ModelSize
    concurrency: tuple[int, ...]
    prompt_tokens: int
    output_tokens: int


PRESETS = {
    "tiny": Preset(
        size=ModelSize(
            layers=3,
            hidden=128,
            heads=4,
            head_dim=32,
            experts=4,
            experts_per_token=2,
            expert_hidden=32,
            vocab=64,
            draft_layers=1,
        ),
        concurrency=(1, 4),
        prompt_tokens=8,
        output_tokens=12,
    ),
    "cpu": Preset(
        size=ModelSize(
            layers=6,
            hidden=256,
            heads=4,
            head_dim=64,
            experts=8,
            experts_per_token=2,
            expert_hidden=192,
            vocab=1024,
            draft_layers=1,
        ),
        concurrency=(1, 8),
        prompt_tokens=16,
        output_tokens=48,
    ),
    "gpu": Preset(
        size=ModelSize(
            layers=30,
            hidden=7168,
            heads=32,
            head_dim=128,
            experts=16,
            experts_per_token=4,
            expert_hidden=0,
            vocab=4096,
            draft_layers=2,
        ),
        concurrency=(1, 8),
        prompt_tokens=128,
        output_tokens=64,
    ),
}
"""Sizes by name. ``gpu`` widens its experts until the weights fill a sixth of each GPU's memory."""


def resolve_device(device: str) -> str:
    """``cuda`` or ``cpu``; for ``auto``, CUDA if there is an NVIDIA device.

    The device files are looked at instead of ``torch.cuda.is_available()``, because a process that has initialised
    CUDA cannot fork ranks that use it.
    """
    if device != "auto":
        return device
    return "cuda" if any(Path("/dev").glob("nvidia[0-9]*")) else "cpu"


def resolve_preset(preset: str, device: str) -> Preset:
    """The named preset; for ``auto``, the one of the device."""
    if preset == "auto":
        preset = "gpu" if device == "cuda" else "cpu"
    return PRESETS[preset]
