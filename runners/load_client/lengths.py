"""Lengths of requests as real services see them: built-in workloads, drawn from published traces.

Each is a pair of distributions, given by quantiles, between which lengths are log-linear. Prompt and answer are drawn
independently: in the traces their logarithms correlate by -0.005 (code) and 0.09 (chat). Below the lowest quantile
lengths go down to half of it; nothing is longer than the highest one, or a single request would decide a level.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHARES = (0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Lengths:
    """One built-in workload."""

    prompt: tuple[int, ...]
    """Tokens of a prompt at each of SHARES."""
    output: tuple[int, ...]
    """Generated tokens at each of SHARES."""
    source: str

    def draw(self, source: random.Random) -> tuple[int, int]:
        """Return the tokens of a prompt and of its answer."""
        return _at(self.prompt, source.random()), _at(self.output, source.random())


BUILT_IN: Mapping[str, Lengths] = {
    "chat": Lengths(
        prompt=(207, 396, 1020, 1189, 2734, 4083, 4142),
        output=(54, 85, 129, 395, 424, 451, 601),
        source="Azure LLM inference trace 2023, conversation: 19,366 requests of 2023-11-16 (Azure/AzurePublicDataset, "
        "data/AzureLLMInferenceTrace_conv.csv, CC-BY; Patel et al., Splitwise, ISCA 2024)",
    ),
    "code": Lengths(
        prompt=(147, 578, 1469, 2744, 5186, 7302, 7436),
        output=(7, 9, 13, 24, 55, 90, 249),
        source="Azure LLM inference trace 2023, code: 8,819 requests of 2023-11-16 (Azure/AzurePublicDataset, "
        "data/AzureLLMInferenceTrace_code.csv, CC-BY; Patel et al., Splitwise, ISCA 2024)",
    ),
    "long-context": Lengths(
        prompt=(964, 2306, 6909, 15366, 27367, 39549, 85399),
        output=(24, 156, 350, 472, 597, 698, 1115),
        source="Mooncake conversation trace: 12,031 requests (kvcache-ai/Mooncake, "
        "FAST25-release/traces/conversation_trace.jsonl; Qin et al., Mooncake, FAST 2025)",
    ),
}


def _at(quantiles: Sequence[int], share: float) -> int:
    """Return the length below which this share of the requests lies."""
    places = (0.0, *SHARES, 1.0)
    values = (quantiles[0] / 2, *quantiles, quantiles[-1])
    above = next(index for index, place in enumerate(places) if place >= share and index > 0)
    part = (share - places[above - 1]) / (places[above] - places[above - 1])
    low, high = math.log(values[above - 1]), math.log(values[above])
    return max(1, round(math.exp(low + part * (high - low))))
