"""vLLM's own reader of schedules takes ours, and drafts at each batch size what we meant."""

from __future__ import annotations

import json
import subprocess

import pytest

from runners.engine_dialects.schedules import engine_schedule
from tests.engines.conftest import InstalledEngine

LOOK_UP = """
import importlib.util, json, pathlib, sys
found = pathlib.Path(importlib.util.find_spec("vllm").origin).parent / "v1/spec_decode/dynamic/utils.py"
spec = importlib.util.spec_from_file_location("schedules", found)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
rows, largest, most = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
print(json.dumps(module.build_dynamic_sd_schedule_lookup(rows, largest, most)))
"""
"""Loads the one file, which imports nothing: importing vLLM takes half a minute."""


@pytest.mark.parametrize("lengths", [{1: 4, 8: 0}, {1: 1, 2: 3, 64: 2}, {4: 5, 16: 0}])
def test_each_batch_size_gets_the_length_of_the_nearest_concurrency(
    vllm: InstalledEngine, lengths: dict[int, int]
) -> None:
    """Behind the last concurrency its length goes on."""
    form = engine_schedule("vllm", "vllm 0.32.0", lengths, {})
    rows = str(form.options["speculative-config.num_speculative_tokens_per_batch_size"])
    argv = [vllm.python, "-c", LOOK_UP, rows, "128", str(max(lengths.values()))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    table = json.loads(done.stdout)
    assert {level: table[level] for level in lengths} == lengths
    for batch in range(1, 129):
        nearest = [level for level in lengths if max(level / batch, batch / level) == _distance(batch, lengths)]
        assert table[batch] in {lengths[level] for level in nearest}


def _distance(batch: int, lengths: dict[int, int]) -> float:
    return min(max(level / batch, batch / level) for level in lengths)
