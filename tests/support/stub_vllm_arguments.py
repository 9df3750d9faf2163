"""What `vllm/engine/arg_utils.py` is in an environment that only seems to hold vLLM: it resolves a few arguments."""

import os
import time
from dataclasses import dataclass

RESOLVED: list[str] = []
"""What was resolved in this very process: resolution leaves state behind."""


@dataclass
class SchedulerConfig:
    """A section of the resolved configuration."""

    max_num_seqs: int
    resolved_before: int


@dataclass
class ParallelConfig:
    """Another section."""

    tensor_parallel_size: int
    worker_port: int


@dataclass
class Config:
    """The resolved configuration."""

    scheduler_config: SchedulerConfig
    parallel_config: ParallelConfig


class AsyncEngineArgs:
    """The arguments of an engine."""

    def __init__(self, ranks: int, sequences: int) -> None:
        self.tensor_parallel_size, self.max_num_seqs = ranks, sequences

    @classmethod
    def from_cli_args(cls, args):
        """Take the parsed arguments."""
        return cls(int(args.tensor_parallel_size or 1), int(args.max_num_seqs or 128))

    def create_engine_config(self, usage_context):
        """Resolve: more than 256 sequences become 256, three ranks are refused, and a variable makes it hang."""
        if os.environ.get("ARGUMENTS_HANG"):
            time.sleep(600)
        if self.tensor_parallel_size == 3:
            raise ValueError("Total number of attention heads (4) must be divisible by tensor parallel size (3).")
        RESOLVED.append(usage_context)
        scheduler = SchedulerConfig(min(self.max_num_seqs, 256), len(RESOLVED))
        return Config(scheduler, ParallelConfig(self.tensor_parallel_size, os.getpid()))
