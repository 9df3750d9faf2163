"""A Ray cluster of several nodes on this machine, made with Ray's own utilities in a process of its own.

Ray reads its token once a process, so the cluster lives apart from the tests and is told what to do, a line at a time.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runners.cookies import kill_processes

ROOT = Path(__file__).parents[2]
MARK = "TEST_RAY_CLUSTER"
STORE_BYTES = 80 * 2**20


@dataclass(frozen=True)
class ClusterNode:
    """One node: a raylet with its workers."""

    id: str
    raylet: int
    """Process id of its raylet, the parent of its workers."""


@dataclass
class RayCluster:
    """A cluster that a test adds nodes to and takes nodes from."""

    process: subprocess.Popen[str]
    variables: dict[str, str]
    """What whoever wants to talk to it must have in the environment; whoever has it ends with the cluster."""
    folder: Path
    """Where Ray keeps the cluster's files."""
    nodes: list[ClusterNode] = field(default_factory=list)
    """Living ones, the head first."""
    address: str = ""

    def add(self, num_cpus: int, processors: int | None = None, num_gpus: int = 0) -> ClusterNode:
        """Add a node; the first one is the head.

        Args:
            num_cpus: What it offers to Ray.
            processors: How many of this machine's processors it sees; by default all.
            num_gpus: GPUs that it says it has.
        """
        said = self._say("add", {"num_cpus": num_cpus, "num_gpus": num_gpus, "processors": processors})
        self.address = said["address"]
        self.nodes.append(ClusterNode(said["id"], said["raylet"]))
        return self.nodes[-1]

    def kill(self, node: ClusterNode) -> None:
        """Kill everything of a node at once, as a power cut does; with the head the cluster is gone."""
        self._say("kill", {"id": node.id})
        self.nodes.remove(node)

    def node_of(self, pid: int) -> ClusterNode | None:
        """Return the node below whose raylet a process runs."""
        while pid > 1:
            for node in self.nodes:
                if node.raylet == pid:
                    return node
            try:
                pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                return None
        return None

    def _say(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError(f"the cluster's process is gone: {self.process.wait()}")


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """Keep a cluster without nodes, and end everything that was started for it."""
    mark, folder = secrets.token_hex(8), tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), MARK: mark}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_raylet_start_wait_time_s": "300",
    }
    quiet["RAY_TMPDIR"] = folder  # else Ray notes the cluster where everybody's `auto` looks for one
    (Path(folder) / "ray").mkdir()
    environment = {**kept, **quiet, **variables, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    program = [sys.executable, "-m", "tests.support.ray_cluster"]
    # In a session of its own: what ends our whole group, as `timeout` does, leaves it the time to end the daemons.
    process = subprocess.Popen(
        program, env=environment, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, start_new_session=True
    )
    try:
        yield RayCluster(process, variables, Path(folder))
    finally:
        kill_processes(mark, variable=MARK)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def serve() -> None:
    """Do what is said on standard input, and answer each line with one of JSON; when nobody is left there, end all."""
    try:
        _answer()
    finally:
        kill_processes(os.environ[MARK], variable=MARK)
        shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)


def _answer() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(shutdown_at_exit=False)
    nodes: dict[str, Any] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["command"] == "add":
            node = _added(cluster, asked)
            nodes[node.node_id] = node
            raylet = node.all_processes["raylet"][0].process.pid
            answer = {"id": node.node_id, "raylet": raylet, "address": cluster.address}
        else:
            node = nodes.pop(asked["id"])
            node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
            if node is cluster.head_node:
                cluster = Cluster(shutdown_at_exit=False)
            answer = {}
        print(json.dumps(answer), flush=True)


def _added(cluster: Any, asked: dict[str, Any]) -> Any:
    own = os.sched_getaffinity(0)
    if asked["processors"] is not None:
        os.sched_setaffinity(0, set(sorted(own)[: asked["processors"]]))
    try:
        return cluster.add_node(
            num_cpus=asked["num_cpus"],
            num_gpus=asked["num_gpus"],
            object_store_memory=STORE_BYTES,
            include_dashboard=False,
        )
    finally:
        os.sched_setaffinity(0, own)


if __name__ == "__main__":
    serve()
