"""One valid document of each kind that users write: what the mutations start from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.small_node import small_data

Data = Any
"""What a YAML or JSON file holds."""

STUDY: dict[str, Data] = {
    "name": "fifo",
    "node": "node.yaml",
    "budget": 12,
    "time_budget": "30m",
    "concurrency": [1, 8],
    "prompt_tokens": 64,
    "output_tokens": 32,
    "requests": 8,
    "seed": 3,
    "pin": {"expert": False},
    "exclude": {"draft": [3], "graph": [64]},
    "options": {},
    "environment": {},
    "trials_per_node": 1,
    "inherit": True,
}
RULES: dict[str, Data] = {
    "rules": [
        {
            "code": "Z001",
            "name": "experts-on-strike",
            "reason": "host_oom",
            "any_of": ["experts went on (?P<option>strike)", "no expert came"],
            "none_of": ["negotiating"],
            "phases": ["load_weights", "serve"],
            "blames": ["expert_parallel"],
            "cure": "Pay for the {option}.",
            "priority": "specific",
        },
        {"code": "Z002", "name": "other", "reason": "unknown", "any_of": ["xyzzy"], "cure": "Look."},
    ]
}
VARIANT: dict[str, Data] = {
    "node": "upgraded",
    "about": "after an upgrade",
    "like": "base.yaml",
    "facts": {"cuda": "13.1", "packages": {"x": "2.2"}},
}
PROMPTS: list[Data] = [
    {"prompt": "Once upon a time", "output_tokens": 16},
    {"input_ids": [1, 2, 3, 4], "source": "a column of its own"},
    {"prompt": "The end"},
]


def space() -> dict[str, Data]:
    """Return a space with every kind of thing that a space may hold."""
    found: dict[str, Data] = small_data()["space"]
    parameters = found["parameters"]
    parameters["steps"] = {
        "meaning": "for a test",
        "unit": "tokens",
        "source": "tests 1.0",
        "range": {"low": 0, "high": 8, "step": 2},
        "default": 2,
        "default_where": [{"facts": {"device": "cpu"}, "value": 4}],
        "env": "STEPS",
        "active_when": {"backend": ["a", "b"]},
        "active_where": {"device": ["cuda"]},
        "near": [{"value": 4, "instead": {"steps": 2}, "why": "half of it"}],
        "locked": [8],
        "proof": "the log says so",
    }
    parameters["fusion"] = {
        "meaning": "for a test",
        "source": "tests 1.0",
        "values": ["none", "auto", "full"],
        "default": "none",
        "unset": "none",
        "switches": {"auto": {"flags": {"fusion": True}}, "full": {"flags": {"fusion-mode": "all"}, "env": {"F": "1"}}},
    }
    found["relations"] = [
        {"why": "w", "implies": {"if": {"backend": ["b"]}, "then": {"draft": [0, 1, 2]}}},
        {"why": "w", "at_most": {"left": "draft", "right": "steps"}, "where": {"expert": [True]}},
        {"why": "w", "divides": {"divisor": "graph", "of": {"fact": "num_ranks"}}, "where": {"expert": [True]}},
    ]
    return found


def node() -> dict[str, Data]:
    """Return a node model with its space inside."""
    return small_data() | {"space": space()}


def table() -> list[Data]:
    """Return the lines of a recorded table."""
    head = {"node": "recorded", "about": "a", "space": small_data()["space"], "facts": small_data()["facts"]}
    point = {"backend": "a", "draft": 2, "graph": 8, "expert": False}
    level = {"concurrency": 1, "tok_per_s": 100.0, "acceptance_length": 1.5}
    failure = {"reason": "gpu_oom", "phase": "serve", "log": ["out"], "exit": {"code": 1}, "blames": ["graph"]}
    return [
        head,
        {"assignment": point, "seconds": 3.5, "phase_s": {"spawn": 1.0}, "levels": [level]},
        {"assignment": {**point, "draft": 0}, "levels": [level, {"concurrency": 8, "tok_per_s": 50}]},
        {"assignment": {**point, "graph": 64}, "failure": failure},
        {"assignment": {**point, "backend": "b"}, "rung": "probe", "pass_us": 120.0, "calls_per_pass": 2},
    ]


CSV = """\
backend,draft,rung,tok_per_s@1,tok_per_s@8,reason,phase,seconds,log,blames
a,0,full,100.5,400,,,12,,
a,2,full,150,300,,,12,,
b,0,full,,,gpu_oom,serve,3,out of memory,draft backend
b,2,probe,,,,,1,,
"""
COMMAND = (
    "HF_HUB_OFFLINE=1 vllm serve /models/tiny -tp 2 --max-num-seqs 64 --trust-remote-code "
    '--speculative-config \'{"method": "ngram", "num_speculative_tokens": 4}\''
)
DOCUMENTS: dict[str, Callable[[], Data]] = {
    "study": lambda: json.loads(json.dumps(STUDY)),
    "space": space,
    "node": node,
    "variant": lambda: json.loads(json.dumps(VARIANT)),
    "rules": lambda: json.loads(json.dumps(RULES)),
    "table": table,
    "prompts": lambda: json.loads(json.dumps(PROMPTS)),
}
"""Kind of document → a fresh copy of its valid data."""
