"""A node model of a few lines for tests, as data that a test may change before it is loaded or written."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from runners import EngineSettings, Rung, TrialRequest, Workload
from search_spaces import Assignment, NodeModel
from search_spaces.node_generator import to_yaml
from search_spaces.node_loader import node_of

_DATA: dict[str, Any] = {
    "node": "small-node",
    "space": {
        "engine": "replay",
        "parameters": {
            "backend": {
                "meaning": "for a test",
                "source": "tests",
                "values": ["a", "b", "c"],
                "default": "a",
                "flag": "backend",
                "seen_by_probe": True,
            },
            "draft": {
                "meaning": "for a test",
                "source": "tests",
                "values": [0, 1, 2, 3],
                "default": 2,
                "flag": "draft",
            },
            "graph": {
                "meaning": "for a test",
                "source": "tests",
                "values": [0, 8, 64],
                "default": 8,
                "flag": "graph",
                "monotone": True,
            },
            "expert": {
                "meaning": "for a test",
                "source": "tests",
                "values": [False, True],
                "default": False,
                "flag": "expert",
            },
        },
        "baseline": {"draft": 0},
        "fallbacks": [{"graph": 0}],
    },
    "facts": {"device": "cuda", "num_ranks": 4, "engine_version": "toy 1.4", "cuda": "12.8", "packages": {"x": "2.1"}},
    "performance": {
        "compute": {"base_us": 1000, "per_row_us": 10},
        "communication": {"calls_per_pass": 100, "latency_us": 10, "per_row_us": 1},
        "draft": {"parameter": "draft", "us_per_token": 100, "acceptance": [0.8, 0.5]},
        "effects": [
            {"when": {"backend": ["b"]}, "component": "communication", "times": 0.5, "why": "for a test"},
            {"when": {"graph": [0]}, "component": "step", "plus_us": 500, "why": "for a test"},
            {"when": {"backend": ["b"], "expert": [True]}, "component": "step", "times": 2, "why": "for a test"},
        ],
    },
    "noise": {"launch_sd": 0.05, "request_sd": 0.05, "probe_sd": 0.02},
    "durations": {"full": {"spawn": 10, "load_weights": 60, "capture_graphs": 20, "stop": 5}, "probe": {"spawn": 2}},
    "failures": [
        {
            "name": "too-large",
            "when": {"graph": {"at_least": 64}, "expert": [True]},
            "reason": "gpu_oom",
            "phase": "capture_graphs",
            "seconds": 7,
            "log": "torch.OutOfMemoryError: CUDA out of memory.",
            "blames": ["graph"],
        },
        {
            "name": "no-path",
            "when": {"backend": ["c"]},
            "where": {"cuda": {"at_most": "12.9"}},
            "reason": "topology_unsupported",
            "phase": "init_distributed",
            "rung": "probe",
            "exit": {"signal": 9},
            "log": "NCCL WARN No transport found for rank 0",
        },
        {
            "name": "now-and-then",
            "when": {"draft": [3]},
            "probability": 0.4,
            "reason": "process_killed",
            "phase": "warmup",
            "log": "Segmentation fault (core dumped)",
            "blames": [],
        },
    ],
    "no_ops": [
        {"when": {"expert": [True], "draft": [1]}, "resolved": {"expert": False}, "why": "experts are not split"},
    ],
}


def small_data() -> dict[str, Any]:
    """Return a copy of the data."""
    return copy.deepcopy(_DATA)


def small_node(**changes: object) -> NodeModel:
    """Return the node model with some of its top-level keys replaced."""
    return node_of({**small_data(), **changes})


def written(folder: Path, data: dict[str, Any]) -> Path:
    """Write the data as a file and return its path."""
    path = folder / "node.yaml"
    path.write_text(to_yaml(data), encoding="utf-8")
    return path


def request_for(
    assignment: Assignment,
    folder: Path,
    *,
    rung: Rung = Rung.FULL,
    identity: str = "x/search/0",
    node_model: str | None = None,
    workload: Workload | None = None,
) -> TrialRequest:
    """Return a request for a modelled launch."""
    return TrialRequest(
        study="study",
        trial=0,
        identity=identity,
        rung=rung,
        settings=EngineSettings(engine="replay", num_ranks=4, device="cuda", node_model=node_model),
        assignment=assignment,
        workload=workload or Workload(),
        cookie="c",
        environment={},
        artifact_dir=str(folder),
    )
