"""The flags of one launch. They are the reproducible command: the same flags and environment give the same run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import NoReturn

from .config import ALLREDUCES, MAX_DRAFT_LENGTH, ConfigError, EngineConfig, ModelSize, Workload
from .presets import PRESETS, Preset, resolve_device, resolve_preset

_SIZE_HELP = {
    "layers": "decoder layers",
    "hidden": "width of the residual stream, in elements",
    "heads": "attention heads",
    "head_dim": "width of one head, in elements",
    "experts": "experts of one layer",
    "experts_per_token": "experts that one token is routed to",
    "expert_hidden": "inner width of one expert, in elements (0: from the GPU's memory)",
    "vocab": "token ids (a square)",
    "draft_layers": "the draft is the early exit after this many layers",
}


class _Parser(argparse.ArgumentParser):
    """A parser that raises ``ConfigError`` instead of leaving the process: a probe server must outlive a bad
    request."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the engine's flags."""
    parser = _Parser(
        prog="python -m runners.torch_engine",
        description="Serve synthetic requests with a small tensor-parallel MoE decoder and write what was measured. "
        "NCCL is configured by its own environment variables (NCCL_ALGO, NCCL_PROTO, ...).",
        allow_abbrev=False,
    )
    _add_knobs(parser)
    _add_workload(parser)
    sizes = parser.add_argument_group("model size (defaults come from the preset)")
    for name, text in _SIZE_HELP.items():
        sizes.add_argument(_flag(name), type=int, metavar="N", help=text)
    return parser


def _add_knobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: cuda if there is an NVIDIA device"
    )
    parser.add_argument(
        "--preset", choices=("auto", *PRESETS), default="auto", help="sizes; auto: gpu on cuda, cpu on cpu"
    )
    parser.add_argument("--tp", type=int, default=2, metavar="N", help="ranks, one process each (default 2)")
    parser.add_argument(
        "--allreduce", choices=ALLREDUCES, help="all-reduce backend (default nccl on cuda, gloo on cpu)"
    )
    parser.add_argument(
        "--expert-parallel",
        choices=("on", "off"),
        default="off",
        help="exchange tokens by all-to-all instead of splitting each expert",
    )
    parser.add_argument(
        "--cuda-graph-max-bs",
        type=int,
        default=0,
        metavar="N",
        help="capture CUDA graphs for 1, 2, 4, ... <= N sequences (0: eager)",
    )
    parser.add_argument(
        "--draft-length",
        type=int,
        default=0,
        metavar="N",
        help=f"drafted tokens a step, 0 (no speculation) to {MAX_DRAFT_LENGTH}",
    )
    parser.add_argument(
        "--draft-agreement",
        type=float,
        default=0.8,
        metavar="P",
        help="share of token classes on which the draft is right, 0 to 1 (default 0.8)",
    )


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--concurrency", metavar="N,N", help="levels: requests in flight, e.g. 1,8")
    parser.add_argument("--prompt-tokens", type=int, metavar="N", help="tokens of each prompt")
    parser.add_argument("--output-tokens", type=int, metavar="N", help="tokens generated for each request")
    parser.add_argument(
        "--requests", type=int, default=0, metavar="N", help="requests of each level (0: twice the level, at least 4)"
    )
    parser.add_argument("--first-level", type=int, default=0, metavar="N", help="level to serve before the others")
    parser.add_argument(
        "--stop-below",
        type=float,
        default=0.0,
        metavar="RATE",
        help="end early once the geometric mean of the levels' output tokens a second is sure to stay below (0: never)",
    )
    parser.add_argument(
        "--hopes", metavar="N=RATE,N=RATE", help="with --stop-below: levels, and the most they may serve"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of weights and prompts (default 0)")
    parser.add_argument("--result", type=Path, metavar="FILE", help="write the result here as JSON, atomically")


def parse_config(argv: Sequence[str]) -> EngineConfig:
    """The launch that the flags describe.

    Raises:
        ConfigError: a flag is unknown, or its value cannot work with the others.
    """
    arguments = build_parser().parse_args(argv)
    device = resolve_device(arguments.device)
    preset = resolve_preset(arguments.preset, device)
    return EngineConfig(
        device=device,
        tp=arguments.tp,
        allreduce=arguments.allreduce or ("nccl" if device == "cuda" else "gloo"),
        expert_parallel=arguments.expert_parallel == "on",
        cuda_graph_max_bs=arguments.cuda_graph_max_bs,
        draft_length=arguments.draft_length,
        draft_agreement=arguments.draft_agreement,
        seed=arguments.seed,
        size=_size(arguments, preset),
        workload=_workload(arguments, preset),
        result=arguments.result,
    )


def _size(arguments: argparse.Namespace, preset: Preset) -> ModelSize:
    given = {field.name: getattr(arguments, field.name) for field in fields(ModelSize)}
    return replace(preset.size, **{name: value for name, value in given.items() if value is not None})


def _workload(arguments: argparse.Namespace, preset: Preset) -> Workload:
    return Workload(
        concurrency=preset.concurrency if arguments.concurrency is None else _levels(arguments.concurrency),
        prompt_tokens=preset.prompt_tokens if arguments.prompt_tokens is None else arguments.prompt_tokens,
        output_tokens=preset.output_tokens if arguments.output_tokens is None else arguments.output_tokens,
        requests=arguments.requests,
        first=arguments.first_level,
        stop_below=arguments.stop_below,
        hopes=_hopes(arguments.hopes or ""),
    )


def _levels(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(level) for level in text.split(",")}))
    except ValueError:
        raise ConfigError(f"concurrency={text}: whole numbers separated by commas, e.g. 1,8") from None


def _hopes(text: str) -> tuple[tuple[int, float], ...]:
    try:
        pairs = [part.split("=") for part in text.split(",") if part]
        return tuple((int(level), float(rate)) for level, rate in pairs)
    except ValueError:
        raise ConfigError(f"hopes={text}: levels with rates, e.g. 1=90,8=600") from None


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
