"""Environments that seem to hold an engine, made once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.installed_engine import add_torch, install_engine, make_model


@dataclass(frozen=True)
class Installed:
    """Two engines in environments of their own, a model of 64 experts, and a draft for it."""

    folder: Path
    sglang: str
    vllm: str
    model: str
    draft: str


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The engines; what they answer is remembered in a cache of the tests' own."""
    folder = tmp_path_factory.mktemp("engines")
    engines = {
        "sglang": install_engine(folder / "sglang", "sglang", "0.5.16"),
        "vllm": install_engine(folder / "vllm", "vllm", "0.32.0"),
    }
    add_torch(folder / "sglang" / "site", "9.9.0", "99.1")
    model = make_model(folder / "model", architectures=["DeepseekV3ForCausalLM"], n_routed_experts=64)
    draft = make_model(folder / "draft", architectures=["LlamaForCausalLMEagle3"], num_hidden_layers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield Installed(folder, **engines, model=model, draft=draft)
