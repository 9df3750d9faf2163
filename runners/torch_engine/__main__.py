"""``python -m runners.torch_engine``: the leader of one launch. It forks the ranks and never touches CUDA itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from .cli import build_parser, parse_config
from .config import ConfigError, EngineConfig

STARTED = time.monotonic()


def main(argv: Sequence[str]) -> int:
    """Run one launch; returns the exit code: 0 done, 1 a rank failed, 2 bad flags, 128 + n stopped by signal n."""
    try:
        config = parse_config(argv)
    except ConfigError as error:
        parser = build_parser()
        parser.print_usage(sys.stderr)
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    return launch(config)


def launch(config: EngineConfig) -> int:
    """Fork the ranks of a launch and wait for them; returns the exit code."""
    from .launcher import Stopped, run_ranks, stop_signals
    from .phases import PhaseLog

    log = PhaseLog(0, STARTED)
    log.phase("spawn")
    with stop_signals():
        try:
            # The slow import, done once: the forked ranks inherit it.
            from .process_group import Rendezvous
            from .rank import run_rank

            rendezvous = Rendezvous.create()
            exits = run_ranks(config.tp, lambda rank: run_rank(config, rendezvous, rank, PhaseLog(rank, STARTED)))
        except Stopped as stopped:
            print(f"{stopped}", file=sys.stderr, flush=True)
            return 128 + stopped.signal_number
    failures = [rank_exit for rank_exit in exits or [] if not rank_exit.is_clean]
    for failure in failures:
        print(failure, file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
