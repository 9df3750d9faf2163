"""The nodes of a Ray cluster: which are there, what they offer, and their own facts, read on the node itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.contract import EngineSettings
from runners.frozen import Frozen
from runners.model_files import files_digest

FACTS_TIMEOUT_S = 120.0
"""How long the libraries of a node's drivers may take to answer."""
ROOT = Path(__file__).resolve().parents[1]
OF_THE_WORKER = ("CUDA_VISIBLE_DEVICES", "PYTHONPATH")
"""Variables that Ray sets for a task, or that are put together anew here."""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node that is alive."""

    id: str
    """Ray's own id, a hexadecimal number: a machine that leaves and joins again gets another one."""
    host: str
    address: str
    offers: Mapping[str, float]
    """Ray's name of a resource (CPU, GPU) → how much of it there is in all."""

    def holds(self, needs: Mapping[str, int]) -> int:
        """Return how many tasks with these needs (`num_cpus`, `num_gpus`) the node holds at the same time."""
        amounts = {name.removeprefix("num_").removesuffix("s").upper(): amount for name, amount in needs.items()}
        return min(int(self.offers.get(name, 0) // amount) for name, amount in amounts.items() if amount)


def resources_of(settings: EngineSettings, ranks: int | None = None) -> dict[str, int]:
    """Return what a trial asks Ray for: a CPU for each rank on a CPU node; on GPUs the ranks' own, and one CPU.

    A modelled launch takes no hardware, whatever node it models. `ranks` are those of a study that tunes them.
    """
    if settings.node_model is not None:
        return {"num_cpus": 1}
    if settings.device == "cuda":
        return {"num_gpus": ranks or settings.num_ranks, "num_cpus": 1}
    return {"num_cpus": ranks or settings.num_ranks}


class NodeQuestion(Frozen):
    """What a node is asked about itself."""

    paths: tuple[str, ...] = ()
    """Folders that hold the engine's packages; by default those that the node's own Python imports from."""
    files: Mapping[str, str] = {}
    """Fact → path of the files that it is the fingerprint of."""


def living(rows: Iterable[Mapping[str, Any]]) -> list[RayNode]:
    """Return the nodes that are alive of what `ray.nodes()` says, in the order of their names."""
    nodes = [
        RayNode(row["NodeID"], row["NodeManagerHostname"], row["NodeManagerAddress"], dict(row["Resources"]))
        for row in rows
        if row["Alive"]
    ]
    return sorted(nodes, key=lambda node: (node.host, node.address, node.id))


def facts_here(text: str) -> str:
    """Answer a question in a Ray worker: JSON in, the facts of this node as JSON out.

    Raises:
        RuntimeError: they cannot be read, with what their reader said last.
    """
    question = NodeQuestion.model_validate_json(text)
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_WORKER}
    # The worker found this package; a fresh process of the same Python has to find it in the same place.
    importable = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "runners.node_facts", *question.paths],
        env={**kept, "PYTHONPATH": os.pathsep.join(importable)},
        capture_output=True,
        text=True,
        timeout=FACTS_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-500:] or f"runners.node_facts ended with {done.returncode}")
    digests = {fact: files_digest(path) for fact, path in question.files.items()}
    return json.dumps({**json.loads(done.stdout), **digests})
