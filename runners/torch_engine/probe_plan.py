"""What one probe exchanges: which collective, which messages, in which modes. From engine flags, or said outright."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .config import ALLREDUCES, ITEM_BYTES, ConfigError, EngineConfig
from .measurement import Exchange, pass_exchanges
from .package_collectives import PACKAGE_COLLECTIVES

OPERATIONS = ("all_reduce", "all_to_all", "all_gather")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbePlan:
    """One probe, complete."""

    device: str
    """``cpu`` or ``cuda``."""
    tp: int
    """Number of ranks."""
    chain: tuple[str, ...]
    """The collective that sums; those behind it take its place, one after the other, where an engine would let them."""
    levels: tuple[tuple[Exchange, ...], ...]
    """The collective calls of one pass at each level of the load, lowest level first."""
    has_graphs: bool
    """Whether they are also called from a CUDA graph."""
    is_graph_served: bool
    """Whether the pass of the lowest level runs from a graph, so that its time there is the one that counts."""
    width: int
    """Elements of one token (the model's hidden size): some kernels want to know the rows of a message."""

    @classmethod
    def of_config(cls, config: EngineConfig, sizes: Sequence[int] = ()) -> ProbePlan:
        """The probe of a launch of this engine; ``sizes`` (bytes) replace the messages of its levels."""
        lowest = config.padded_batch(config.workload.concurrency[0])
        rows = [config.padded_batch(level) * config.query_rows for level in config.workload.concurrency]
        levels = [pass_exchanges(config, each, config.size.layers) for each in rows]
        if sizes:
            levels = [_resized(levels[0], size // ITEM_BYTES[config.device], config.tp) for size in sizes]
        return cls(
            device=config.device,
            tp=config.tp,
            chain=(config.allreduce,),
            levels=tuple(map(tuple, levels)),
            has_graphs=bool(config.graph_batch_sizes),
            is_graph_served=lowest in config.graph_batch_sizes,
            width=config.size.hidden,
        )

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> ProbePlan:
        """The probe that a request describes. Raises ``ConfigError`` when it describes none."""
        try:
            levels = tuple(tuple(Exchange(**each) for each in level) for level in content["levels"])
            chain = tuple(content["chain"])
            plan = cls(**{**content, "levels": levels, "chain": chain})
        except (TypeError, KeyError) as error:
            raise ConfigError(f"not a probe plan: {error}") from error
        plan._check()
        return plan

    def _check(self) -> None:
        for name in self.chain:
            if name not in ALLREDUCES and name not in PACKAGE_COLLECTIVES:
                raise ConfigError(f"chain: there is no collective {name}")
        exchanges = [exchange for level in self.levels for exchange in level]
        if not self.chain or not exchanges:
            raise ConfigError("a probe needs a collective and a message")
        for exchange in exchanges:
            if exchange.op not in OPERATIONS or exchange.numel < 1 or exchange.count < 1:
                raise ConfigError(f"levels: {exchange} cannot be called")

    @property
    def packages(self) -> tuple[str, ...]:
        """The collectives of the chain that live in an engine's package."""
        return tuple(name for name in self.chain if name in PACKAGE_COLLECTIVES)

    @property
    def modes(self) -> tuple[str, ...]:
        """How the collectives are called."""
        return ("eager", "graph") if self.has_graphs else ("eager",)

    @property
    def served_mode(self) -> str:
        """How the pass of the lowest level calls them."""
        return "graph" if self.has_graphs and self.is_graph_served else "eager"

    @property
    def max_numel(self) -> int:
        """Elements of the largest message."""
        return max(exchange.numel for level in self.levels for exchange in level)


def _resized(exchanges: list[Exchange], numel: int, num_ranks: int) -> list[Exchange]:
    """The same calls with messages of about ``numel`` elements: what a rank sends to all divides by their number."""
    whole = max(1, numel // num_ranks) * num_ranks
    return [Exchange(each.op, whole if each.op == "all_to_all" else max(1, numel), each.count) for each in exchanges]
