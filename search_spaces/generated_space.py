"""Search spaces for generated nodes: a seeded choice among parameters as serving engines have them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from search_spaces.assignment import Scalar

SOURCE = "search_spaces/generated_space.py, shaped after SGLang 0.5 and NCCL 2.27"


@dataclass(frozen=True, slots=True)
class Template:
    """A parameter that a generated space may have."""

    name: str
    values: tuple[Scalar, ...]
    meaning: str
    component: str
    """What of a step it changes: communication, compute or step."""
    is_categorical: bool = False
    """Whether its values have no order, so that any few of them will do."""
    seen_by_probe: bool = False
    beyond: bool = False
    """Whether it changes more than the collectives."""
    monotone: bool = False
    env: str | None = None


ALWAYS = (
    Template(
        "allreduce",
        ("nccl", "custom", "symm_one_shot", "symm_two_shot", "fused", "pcie_ipc", "mscclpp"),
        "Backend of the all-reduce.",
        "communication",
        is_categorical=True,
        seen_by_probe=True,
    ),
    Template("draft_length", tuple(range(9)), "Tokens drafted for each pass; 0 switches speculation off.", "draft"),
    Template(
        "cuda_graph_max_bs",
        (0, 1, 2, 4, 8, 16, 32, 64),
        "Largest batch captured into CUDA graphs; 0 runs eager.",
        "graph",
        seen_by_probe=True,
        beyond=True,
        monotone=True,
    ),
    Template(
        "expert_parallel",
        (False, True),
        "Whether whole experts lie on one rank.",
        "communication",
        seen_by_probe=True,
        beyond=True,
    ),
)
OTHERS = (
    Template(
        "nccl_algo",
        ("auto", "ring", "tree", "nvls", "pat"),
        "Algorithm of NCCL's all-reduce.",
        "communication",
        is_categorical=True,
        seen_by_probe=True,
        env="NCCL_ALGO",
    ),
    Template(
        "nccl_proto",
        ("auto", "LL", "Simple", "LL128"),
        "Protocol of NCCL's all-reduce.",
        "communication",
        is_categorical=True,
        seen_by_probe=True,
        env="NCCL_PROTO",
    ),
    Template(
        "nccl_max_ctas",
        (1, 2, 4, 8, 16, 32),
        "Most thread blocks of one collective.",
        "communication",
        seen_by_probe=True,
        monotone=True,
        env="NCCL_MAX_CTAS",
    ),
    Template(
        "p2p_disable",
        (False, True),
        "Whether direct access between GPUs is off.",
        "communication",
        seen_by_probe=True,
        env="NCCL_P2P_DISABLE",
    ),
    Template(
        "moe_a2a_backend",
        ("none", "deepep", "flashinfer", "pplx", "mooncake"),
        "All-to-all backend of the experts.",
        "step",
        is_categorical=True,
    ),
    Template(
        "moe_runner_backend",
        ("triton", "cutlass", "flashinfer_trtllm", "marlin", "deep_gemm"),
        "Kernels of the experts.",
        "compute",
        is_categorical=True,
    ),
    Template(
        "attention_backend",
        ("triton", "fa3", "flashinfer", "trtllm_mha"),
        "Attention kernels.",
        "compute",
        is_categorical=True,
    ),
    Template(
        "kv_cache_dtype", ("bf16", "fp8_e4m3", "fp8_e5m2"), "Type of the KV cache.", "compute", is_categorical=True
    ),
    Template("overlap_schedule", (False, True), "Whether scheduling overlaps with the GPU's work.", "step"),
    Template("torch_compile", (False, True), "Whether the model is compiled.", "compute"),
    Template(
        "mem_fraction_percent", (60, 70, 80, 85, 90, 95), "Memory for weights and KV cache.", "step", monotone=True
    ),
    Template(
        "chunked_prefill_size", (1024, 2048, 4096, 8192, 16384), "Tokens of a prefill chunk.", "step", monotone=True
    ),
    Template("page_size", (1, 16, 32, 64), "Tokens of a KV page.", "compute"),
    Template("num_continuous_steps", (1, 2, 4, 8), "Steps between two schedules.", "step", monotone=True),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A parameter of one generated space."""

    template: Template
    values: tuple[Scalar, ...]
    default: Scalar

    @property
    def flag(self) -> str:
        """How the engine is told, as a log would name it."""
        return self.template.env or f"--{self.template.name.replace('_', '-')}"

    def as_data(self) -> dict[str, object]:
        """Return the parameter as a space file holds it."""
        template = self.template
        told = {"env": template.env} if template.env else {"flag": template.name.replace("_", "-")}
        marks = {
            "seen_by_probe": template.seen_by_probe,
            "effect_beyond_collectives": template.beyond,
            "monotone": template.monotone,
        }
        return {
            "meaning": template.meaning,
            "source": SOURCE,
            "values": list(self.values),
            "default": self.default,
            **told,
            **{mark: True for mark, is_set in marks.items() if is_set},
        }


def choose_parameters(rng: random.Random, number: int) -> tuple[Chosen, ...]:
    """Return that many parameters: the four that every node has, and a choice of the others."""
    others = rng.sample(OTHERS, number - len(ALWAYS))
    return tuple(_chosen(rng, template) for template in (*ALWAYS, *others))


def space_data(parameters: tuple[Chosen, ...]) -> dict[str, object]:
    """Return the space of these parameters as a file holds it."""
    by_name = {each.template.name: each for each in parameters}
    backend, graphs = by_name["allreduce"], by_name["cuda_graph_max_bs"]
    return {
        "engine": "replay",
        "parameters": {name: each.as_data() for name, each in by_name.items()},
        "baseline": {"draft_length": 0},
        "fallbacks": [
            {"allreduce": backend.values[0]},
            {"cuda_graph_max_bs": graphs.values[1]},
            {"cuda_graph_max_bs": graphs.values[0]},
            {"expert_parallel": False},
            {name: each.values[0] for name, each in by_name.items() if each.template.monotone},
            {name: each.values[0] for name, each in by_name.items()},
        ],
    }


def _chosen(rng: random.Random, template: Template) -> Chosen:
    values = template.values
    if template.is_categorical and len(values) > 3:
        kept = {values[0], *rng.sample(values[1:], rng.randint(2, min(4, len(values) - 1)))}
        values = tuple(value for value in values if value in kept)
    elif template.name == "draft_length":
        values = values[: rng.randint(5, len(values))]
    elif len(values) > 4:
        values = values[: rng.randint(4, len(values))]
    default = {"draft_length": 3, "cuda_graph_max_bs": values[-1], "expert_parallel": False}.get(template.name)
    return Chosen(template, values, rng.choice(values) if default is None else default)
