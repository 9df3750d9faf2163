"""``python -m runners.torch_engine.matrix --out FILE``: a table of launches, backend x eager/graph x draft length.

Every cell is a whole launch in processes of its own, forked from one process that imported torch; a cell that fails is
recorded with the last line of its reason. The file is rewritten after every cell. Further engine flags follow ``--``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from .__main__ import main as run_engine
from .config import ALLREDUCES
from .launcher import RankExit, Stopped, run_ranks, stop_signals
from .probe_ranks import redirect_output
from .result import write_result

_REASON = re.compile(
    r"^\[rank\d+\] \w[\w.]*(Error|Exception|Warning)?: .*|^rank \d+ died: .*|^.*: error: .*", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One launch of the table."""

    allreduce: str
    expert_parallel: str
    graph_batch: int
    draft_length: int

    def flags(self) -> list[str]:
        """The engine flags of this cell."""
        values = {
            "--allreduce": self.allreduce,
            "--expert-parallel": self.expert_parallel,
            "--cuda-graph-max-bs": self.graph_batch,
            "--draft-length": self.draft_length,
        }
        return [str(part) for pair in values.items() for part in pair]

    def row(self) -> dict[str, Any]:
        """What identifies the cell in the table."""
        return {
            "allreduce": self.allreduce,
            "expert_parallel": self.expert_parallel,
            "mode": "graph" if self.graph_batch else "eager",
            "draft_length": self.draft_length,
        }


def measure_cell(cell: Cell, engine_flags: Sequence[str], timeout_s: float, folder: Path) -> dict[str, Any]:
    """Run one cell and return its row of the table."""
    log, result = folder / "log", folder / "result.json"
    log.write_bytes(b"")
    result.unlink(missing_ok=True)
    started = time.monotonic()

    def launch(_: int) -> None:
        redirect_output(log)
        run_engine([*engine_flags, *cell.flags(), "--result", str(result)])

    exits = run_ranks(1, launch, timeout_s)
    row = cell.row() | {"seconds": round(time.monotonic() - started, 2)}
    if not result.exists():
        return row | {"ok": False, "error": _reason(exits, log.read_text(errors="replace"))}
    return row | {"ok": True, "error": None} | _figures(json.loads(result.read_text()))


def _reason(exits: list[RankExit] | None, log: str) -> str:
    if exits is None:
        return "no end within the time limit"
    reasons = [match.group(0) for match in _REASON.finditer(log)]
    return (reasons or log.splitlines() or [str(exits[-1])])[-1 if not reasons else 0]


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    levels, exchanges, floor = result["levels"], result["collectives"], result["floor"]
    return {
        "output_tok_per_s": {str(level["concurrency"]): level["output_tok_per_s"] for level in levels},
        "step_ms_p50": {str(level["concurrency"]): level["step_ms"]["p50"] for level in levels},
        "acceptance_length": {str(level["concurrency"]): level["acceptance_length"] for level in levels},
        "us_per_call": exchanges["us_per_call"],
        "exchange_us_per_step": exchanges["us_per_step"],
        "exchanges": exchanges["calls"],
        "floor_ms": floor and floor["floor_ms"],
        "floor_ratio": floor and floor["ratio"],
        "min_logit_margin": result["min_logit_margin"],
        "margin_bound": result["margin_bound"],
        "outputs": result["outputs"],
        "engine": result["engine"],
        "model": result["model"],
    }


def run_table(cells: Sequence[Cell], engine_flags: Sequence[str], timeout_s: float, out: Path) -> list[dict[str, Any]]:
    """Measure all cells; outputs are compared with those of the first cell that worked."""
    rows: list[dict[str, Any]] = []
    reference: list[list[int]] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for cell in cells:
            row = measure_cell(cell, engine_flags, timeout_s, Path(folder))
            outputs = row.pop("outputs", None)
            reference = reference or outputs
            row["same_outputs"] = outputs == reference if outputs else None
            rows.append(row)
            print(format_row(row), flush=True)
            write_result(out, {"engine_flags": list(engine_flags), "cells": rows})
    return rows


def format_row(row: dict[str, Any]) -> str:
    """One line of the Markdown table that the command prints."""
    head = f"| {row['allreduce']} | {row['expert_parallel']} | {row['mode']} | {row['draft_length']} |"
    if not row["ok"]:
        return f"{head} {row['error']} | | | | {row['seconds']} |"
    speeds = " / ".join(f"{speed:.0f}" for speed in row["output_tok_per_s"].values())
    ratio = f"{row['floor_ratio']:.2f}" if row["floor_ratio"] else "-"
    return f"{head} {speeds} | {row['us_per_call']:.1f} | {ratio} | {row['same_outputs']} | {row['seconds']} |"


def make_cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """The cells in the order they are measured."""
    graph_batches = [arguments.graph_batch if mode == "graph" else 0 for mode in arguments.modes.split(",")]
    drafts = [int(draft) for draft in arguments.drafts.split(",")]
    backends, experts = arguments.backends.split(","), arguments.expert_parallel.split(",")
    for backend, exchange, graph_batch, draft in product(backends, experts, graph_batches, drafts):
        yield Cell(backend, exchange, graph_batch, draft)


def main(argv: Sequence[str]) -> int:
    """The command line; returns 0 when every cell was measured or recorded as failed."""
    parser = argparse.ArgumentParser(prog="python -m runners.torch_engine.matrix", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file, rewritten after every cell")
    parser.add_argument("--backends", default=",".join(ALLREDUCES), help="all-reduce backends, separated by commas")
    parser.add_argument("--modes", default="eager,graph", help="eager, graph or both")
    parser.add_argument("--drafts", default="0,1,3,5", help="draft lengths, in tokens")
    parser.add_argument("--expert-parallel", default="off", help="off, on or both, separated by a comma")
    parser.add_argument("--graph-batch", type=int, default=8, help="largest captured batch of graph cells (sequences)")
    parser.add_argument("--timeout-s", type=float, default=60.0, help="time limit of one cell, in seconds")
    parser.add_argument("flags", nargs="*", help="engine flags of every cell, after --")
    arguments = parser.parse_args(argv)
    print("| all-reduce | experts | mode | draft | tok/s by level | us per call | floor ratio | same output | s |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with stop_signals():
        try:
            run_table(list(make_cells(arguments)), arguments.flags, arguments.timeout_s, arguments.out)
        except Stopped as stopped:
            return 128 + stopped.signal_number
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
