"""Random node models with planted truths: `python -m search_spaces.node_generator --seed 7 > node.yaml`.

Everything hangs on the seed. A node has 8 to 12 parameters with effects of its own, interactions of pairs, 8 to 12
planted failures (conjunctions of one to three conditions, thresholds on ordered parameters), one or two flaky failures
and one or two silent fallbacks. Of random assignments 40 to 70 % fail.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass, field
from typing import Literal

import yaml

from search_spaces.assignment import Assignment, Scalar
from search_spaces.generated_failures import Planter
from search_spaces.generated_space import Chosen, choose_parameters, space_data
from search_spaces.node_loader import node_of
from search_spaces.node_model import NodeModel

Size = Literal["small", "medium", "large"]
PARAMETERS: dict[Size, int] = {"small": 8, "medium": 10, "large": 12}
FAILURES: dict[Size, int] = {"small": 8, "medium": 10, "large": 12}
WIDEST = {
    "allreduce": (0.55, 1.8),
    "communication": (0.75, 1.35),
    "compute": (0.75, 1.4),
    "step": (0.8, 1.3),
}
"""Range of the main effects, by parameter or by the component that it changes."""
SHARE_DEFAULT_DIES = 0.15
"""Share of the nodes on which the engine's default fails."""


def generate(seed: int, size: Size = "medium") -> NodeModel:
    """Return the node model of a seed. Equal seeds and sizes give equal nodes."""
    return node_of(node_data(seed, size))


def node_data(seed: int, size: Size = "medium") -> dict[str, object]:
    """Return the node model of a seed as its file would hold it."""
    rng = random.Random(f"{seed}/{size}")  # noqa: S311 - a reproducible truth, not a secret
    parameters = choose_parameters(rng, PARAMETERS[size])
    truth = _Truth(rng, parameters)
    planter = Planter(rng, parameters, must_spare_default=rng.random() >= SHARE_DEFAULT_DIES)
    failures, no_ops = planter.plant(FAILURES[size])
    num_ranks = rng.choice((2, 4, 8))
    return {
        "node": f"generated-{size}-{seed}",
        "about": f"Made by search_spaces.node_generator from seed {seed}; it models no real node.",
        "seed": seed,
        "space": space_data(parameters),
        "facts": {
            "device": "cuda",
            "num_ranks": num_ranks,
            "gpu_count": num_ranks,
            "gpu_names": ["Generated GPU"] * num_ranks,
            "gpu_arch": "sm_90",
            "gpu_memory_bytes": 80 * 2**30,
            "cuda": "12.8",
            "nccl": "2.27.5",
            "torch": "2.9.0",
            "engine_version": "generated 1.0",
            "model": f"generated-{seed}",
            "packages": {},
        },
        "performance": truth.performance(),
        "noise": {"launch_sd": round(rng.uniform(0.02, 0.08), 3), "request_sd": 0.05, "probe_sd": 0.02},
        "durations": truth.durations(),
        "failures": failures,
        "no_ops": no_ops,
    }


@dataclass
class _Truth:
    """Speed and durations of a generated node."""

    rng: random.Random
    parameters: tuple[Chosen, ...]
    _effects: list[dict[str, object]] = field(default_factory=list)

    def performance(self) -> dict[str, object]:
        rng = self.rng
        base_us = round(rng.uniform(4_000, 12_000))
        calls = rng.choice((80, 122, 160))
        share = rng.uniform(0.5, 1.4)  # of the communication, relative to the computing
        latency_us = round(share * base_us / calls, 1)
        for chosen in self.parameters:
            self._main_effects(chosen, base_us)
        self._interactions()
        first = rng.uniform(0.5, 0.88)
        decay = rng.uniform(0.8, 0.96)
        return {
            "compute": {"base_us": base_us, "per_row_us": round(base_us * rng.uniform(0.004, 0.015), 1)},
            "communication": {
                "calls_per_pass": calls,
                "latency_us": latency_us,
                "per_row_us": round(latency_us * rng.uniform(0.005, 0.04), 3),
            },
            "draft": {
                "parameter": "draft_length",
                "us_per_token": round(base_us * rng.uniform(0.06, 0.25)),
                "per_request_us": round(base_us * rng.uniform(0.001, 0.006), 1),
                "acceptance": [round(first * decay**position, 3) for position in range(8)],
            },
            "effects": self._effects,
        }

    def durations(self) -> dict[str, object]:
        rng = self.rng
        full = {
            "spawn": round(rng.uniform(8, 20)),
            "init_distributed": round(rng.uniform(10, 30)),
            "load_weights": round(rng.uniform(60, 400)),
            "alloc_kv": 4,
            "compile": round(rng.uniform(0, 60)),
            "capture_graphs": round(rng.uniform(10, 60)),
            "warmup": round(rng.uniform(3, 12)),
            "stop": 6,
        }
        probe = {"spawn": 2.5, "init_distributed": 1.5, "warmup": 1.0, "stop": 0.3}
        return {"full": full, "probe": probe, "requests": 32, "output_tokens": 256}

    def _effect(self, when: dict[str, object], component: str, times: float, why: str, **more: object) -> None:
        self._effects.append({"when": when, "component": component, "times": round(times, 3), **more, "why": why})

    def _main_effects(self, chosen: Chosen, base_us: float) -> None:
        name, rng = chosen.template.name, self.rng
        if name == "cuda_graph_max_bs":
            self._graph_effects(chosen, base_us)
        elif chosen.template.component in ("communication", "compute", "step"):
            target = chosen.template.component
            widest = WIDEST[name if name in WIDEST else target]
            factors = [rng.uniform(*widest) for _ in chosen.values]
            if not chosen.template.is_categorical:  # ordered: from one end to the other, or best in between
                factors.sort(reverse=rng.random() < 0.5)
            for value, factor in zip(chosen.values, factors, strict=True):
                if abs(factor - 1.0) > 0.02:
                    self._effect({name: [value]}, target, factor, f"{name} = {value} on this node")
            if chosen.template.beyond:
                self._effect(
                    {name: [chosen.values[-1]]}, "compute", rng.uniform(0.8, 1.3), f"{name} beyond collectives"
                )

    def _graph_effects(self, chosen: Chosen, base_us: float) -> None:
        """A level whose batch is larger than every captured one runs eager."""
        name, eager = "cuda_graph_max_bs", self.rng.uniform(1.25, 1.6)
        for value in chosen.values:
            beyond = {"at_least": int(value) + 1}
            self._effect({name: [value]}, "compute", eager, "larger batches run eager", concurrency=beyond)
            self._effect({name: [value]}, "communication", eager, "larger batches run eager", concurrency=beyond)
        if isinstance(largest := chosen.values[-1], int) and largest >= 16:
            self._effect({name: {"at_least": largest}}, "step", self.rng.uniform(1.0, 1.06), "padding")

    def _interactions(self) -> None:
        rng = self.rng
        free = [chosen for chosen in self.parameters if chosen.template.name != "draft_length"]
        for _ in range(rng.randint(2, 4)):
            first, second = rng.sample(free, 2)
            when: dict[str, object] = {each.template.name: [rng.choice(each.values)] for each in (first, second)}
            names = " with ".join(when)
            self._effect(when, "step", rng.choice((rng.uniform(0.78, 0.92), rng.uniform(1.1, 1.35))), names)
        backend = rng.choice(self.parameters[0].values[1:])
        self._effect({"allreduce": [backend]}, "draft", rng.uniform(0.7, 1.3), "the draft's own all-reduces")


def random_assignments(node: NodeModel, rng: random.Random, number: int) -> list[Assignment]:
    """Return uniformly drawn assignments of a node's space, in normal form; none breaks a relation."""
    found: list[Assignment] = []
    domains: dict[str, tuple[Scalar, ...]] = {name: each.domain for name, each in node.space.parameters.items()}
    while len(found) < number:
        point = node.space.normalise({name: rng.choice(values) for name, values in domains.items()}, node.facts)
        if node.space.violation(point, node.facts) is None:
            found.append(point)
    return found


def to_yaml(data: dict[str, object]) -> str:
    """Return the data of a node model as the text of its file."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes out what stands twice: the reader of such files takes no aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def main() -> None:
    """Print the node model of a seed."""
    parser = argparse.ArgumentParser(description="Print a random node model as YAML; everything hangs on the seed.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--size", choices=sorted(PARAMETERS), default="medium")
    given = parser.parse_args()
    sys.stdout.write(to_yaml(node_data(given.seed, given.size)))


if __name__ == "__main__":
    main()
