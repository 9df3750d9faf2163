"""How SGLang is told: the names of its options from 0.5.6 to 0.5.23, and what a launch adds to them.

Source: argparse declarations of the wheels 0.5.6 to 0.5.23 (srt/server_args.py, srt/arg_groups/fields).
"""

from __future__ import annotations

from collections.abc import Mapping

from runners.contract import EngineSettings
from runners.engine_dialects.engine_options import EngineOptions
from runners.engine_dialects.spelling import VALUE, Dialect, Way
from search_spaces import Scalar

MODULE = "sglang.launch_server"
"""`python -m` works in all versions; `sglang serve` is newer."""
MODEL, TP_SIZE, DRAFT = "model-path", "tp-size", "speculative-draft-model-path"
DRAFTLESS = ("NGRAM",)

DIALECT: Dialect = {
    # Above the older name on purpose: from 0.5.20 on that is an ambiguous prefix of two options (exit code 2).
    "cuda-graph-max-bs": (Way({"cuda-graph-max-bs-decode": VALUE}), Way({"cuda-graph-max-bs": VALUE})),
    "cuda-graph-bs": (Way({"cuda-graph-bs-decode": VALUE}), Way({"cuda-graph-bs": VALUE})),
    "disable-decode-cuda-graph": (
        Way({"disable-decode-cuda-graph": True}),
        Way({"cuda-graph-backend-decode": "disabled"}),
        Way({"disable-cuda-graph": True}),  # before 0.5.14 one switch for both phases
    ),
    "disable-prefill-cuda-graph": (
        Way({"disable-prefill-cuda-graph": True}),
        Way({"cuda-graph-backend-prefill": "disabled"}),
        Way({"disable-piecewise-cuda-graph": True}),
        Way({}, before=(0, 5, 10)),  # off unless asked for
    ),
    "cuda-graph-max-bs-prefill": (
        Way({"cuda-graph-max-bs-prefill": VALUE}),
        Way({"piecewise-cuda-graph-max-tokens": VALUE}),
    ),
    "enforce-disable-flashinfer-allreduce-fusion": (
        Way({"enforce-disable-flashinfer-allreduce-fusion": True}),
        # No way to forbid it; it switches itself on for GptOss and DeepSeek-V3 on SM90 and SM100 only.
        Way({}, before=(0, 5, 10)),
    ),
    "flashinfer-allreduce-fusion-backend": (
        Way({"flashinfer-allreduce-fusion-backend": VALUE}),
        Way({"enable-flashinfer-allreduce-fusion": True}, values=("auto",)),
    ),
    "attn-dp-size": (Way({"attn-dp-size": VALUE}), Way({"dp-size": VALUE, "enable-dp-attention": True})),
    "speculative-ngram-max-trie-depth": (
        Way({"speculative-ngram-max-trie-depth": VALUE}),
        Way({"speculative-ngram-max-match-window-size": VALUE}),
    ),
    "mamba-radix-cache-strategy": (
        Way({"mamba-radix-cache-strategy": VALUE}),
        Way({"mamba-scheduler-strategy": VALUE}),
    ),
}

ALIASES: Mapping[str, str] = {
    "cuda-graph-max-bs-decode": "cuda-graph-max-bs",
    "cuda-graph-bs-decode": "cuda-graph-bs",
    "piecewise-cuda-graph-max-tokens": "cuda-graph-max-bs-prefill",
    "disable-piecewise-cuda-graph": "disable-prefill-cuda-graph",
    "speculative-ngram-max-match-window-size": "speculative-ngram-max-trie-depth",
    "mamba-scheduler-strategy": "mamba-radix-cache-strategy",
    "model": "model-path",
    "tensor-parallel-size": TP_SIZE,
    "tp": TP_SIZE,
    "expert-parallel-size": "ep-size",
    "ep": "ep-size",
    "data-parallel-size": "dp-size",
    "speculative-draft-model": DRAFT,
}
"""Any version's spelling → our name."""
EXPANSIONS: Mapping[tuple[str, Scalar], Mapping[str, Scalar]] = {
    ("disable-cuda-graph", True): {"disable-decode-cuda-graph": True, "disable-prefill-cuda-graph": True},
    ("cuda-graph-backend-decode", "disabled"): {"disable-decode-cuda-graph": True},
    ("cuda-graph-backend-prefill", "disabled"): {"disable-prefill-cuda-graph": True},
    ("enable-flashinfer-allreduce-fusion", True): {"flashinfer-allreduce-fusion-backend": "auto"},
    ("speculative-algorithm", "NEXTN"): {"speculative-algorithm": "EAGLE"},  # another name of the same
}
"""What one option with one value says in our names, where that is more than a name."""
OVERLAPS: Mapping[str, str] = {
    "cuda-graph-bs": "cuda-graph-max-bs",
    "cuda-graph-config": "cuda-graph-max-bs",
}
"""An option that the user may fix → the one of ours that must then be left alone."""
SHORT_OPTIONS: Mapping[str, str] = {}
CHOSEN_BY_US = ("host", "port", "nccl-port")


def launch_options(
    settings: EngineSettings, said: Mapping[str, Scalar], seed: int, accepted: EngineOptions
) -> dict[str, Scalar]:
    """Return what a launch needs beside the options `said`, which go before it."""
    found: dict[str, Scalar] = {MODEL: str(settings.model), TP_SIZE: settings.num_ranks}
    if settings.device != "cuda":
        found["device"] = settings.device
    if accepted.option("random-seed"):
        found["random-seed"] = seed  # otherwise SGLang draws one, and two launches differ
    algorithm = said.get("speculative-algorithm")
    if algorithm is not None and algorithm not in DRAFTLESS and settings.draft_model is not None:
        found[DRAFT] = settings.draft_model
    return found


def expand(name: str, value: Scalar) -> Mapping[str, Scalar]:
    """Return what one option says in our names."""
    return EXPANSIONS.get((name, value), {name: value})


def complete(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the options without those that only mean something beside a speculative algorithm, where there is none."""
    speculates = "speculative-algorithm" in options
    return {name: value for name, value in options.items() if speculates or not name.startswith("speculative-")}
