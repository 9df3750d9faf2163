"""What bare torch can do on this machine, asked without any of our code: the expected dead ends come from here.

    python -m tests.support.bare_torch

Each value of the torch space that needs something of torch is tried with the shortest call that needs the same thing,
in a process of its own, and printed as a line `parameter comparison value` when that call fails.
"""

from __future__ import annotations

import subprocess
import sys

GROUP = """
import tempfile, torch, torch.distributed as dist
device = "cuda" if torch.cuda.is_available() else "cpu"
store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group({backend}, store=store, rank=0, world_size=1)
x = torch.ones(64, device=device)
"""
NATIVE = "'nccl' if device == 'cuda' else 'gloo'"
SYMMETRIC = """
import torch.distributed._symmetric_memory as symm_mem
buffer = symm_mem.empty(64, device=device)
symm_mem.rendezvous(buffer, dist.group.WORLD)
torch.ops.symm_mem.{op}(buffer, "sum", dist.group.WORLD.group_name)
"""
GRAPH = """
import torch
graph = torch.cuda.CUDAGraph()
x = torch.ones(64, device="cuda")
with torch.cuda.graph(graph):
    y = x + 1
graph.replay()
torch.cuda.synchronize()
"""
CALLS = {
    "allreduce = nccl": GROUP.format(backend="'nccl'") + "dist.all_reduce(x)\n",
    "allreduce = gloo": GROUP.format(backend="'gloo'") + "dist.all_reduce(x)\n",
    "allreduce = symm_mem_one_shot": GROUP.format(backend=NATIVE) + SYMMETRIC.format(op="one_shot_all_reduce"),
    "allreduce = symm_mem_two_shot": GROUP.format(backend=NATIVE) + SYMMETRIC.format(op="two_shot_all_reduce_"),
    "allreduce = all_gather_local_sum": GROUP.format(backend=NATIVE)
    + "dist.all_gather_into_tensor(torch.empty(64, device=device), x)\n",
    "allreduce = reduce_scatter_all_gather": GROUP.format(backend=NATIVE)
    + "dist.all_to_all_single(torch.empty(64, device=device), x)\n",
    "expert_parallel = true": GROUP.format(backend=NATIVE)
    + "dist.all_to_all_single(torch.empty(64, device=device), x)\n",
    "cuda_graph_max_bs ≥ 1": GRAPH,
}


def expected_dead_ends() -> set[str]:
    """Return the conditions that bare torch cannot meet here."""
    return {condition for condition, code in CALLS.items() if not _works(code)}


def _works(code: str) -> bool:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    print("\n".join(sorted(expected_dead_ends())))
