"""A cluster of machines that share nothing, and one of them cut off in mid-trial. Needs root, and `ip netns`.

    python -m tests.benchmarks.cut_off --budget 8

Each node is a network namespace with a host name, a /dev/shm, a folder for Ray and a folder for state of its own, tied
to the others by a bridge. A study of the torch engine runs on them. Once a launch is under way on one of them, its
cable is pulled: no process dies, nothing is refused, packets are gone. Said is how long it took until the launch was
queued again, what was lost or doubled, whether the files of every launch came back, and when the engine on the other
side of the cut ended.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from agent.home import Home
from agent.reading import read_study
from agent.reasons import Reason
from agent.store.trial import Trial
from runners.cookies import find_processes, kill_processes
from tests.support.command_line import ROOT, running_cookies
from tests.support.study_checks import problems_of

MARK = "CUT_OFF_MARK"
BRIDGE, NETWORK, PORT = "agbr0", "10.77.13", 26379
HEAD = f"{NETWORK}.1"
PATIENCE_S, END_S, PAUSE_S = 240.0, 900.0, 0.5
Found = TypeVar("Found")


def eventually(condition: Callable[[], Found], timeout_s: float) -> Found:
    """Return the first true value of a condition; it looks at every process there is, so it is not asked all the time.

    Raises:
        TimeoutError: there is none in time.
    """
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError("the condition did not come true in time")
        time.sleep(PAUSE_S)
    return value


@dataclass(frozen=True)
class Namespace:
    """One machine."""

    name: str
    address: str

    @property
    def cable(self) -> str:
        """The end of its cable at the bridge."""
        return f"{self.name}-cable"


@dataclass
class Finding:
    """What came of the study."""

    nodes: int = 0
    launches: int = 0
    lost_launches: int = 0
    queued_again_after_s: float | None = None
    """From the cut until the launch was closed as lost with its node."""
    engine_ended_after_s: float | None = None
    """From the cut until the last process of the launch on the cut node was gone."""
    joined_again: bool = False
    """Whether the machine took trials again once its cable was back and its Ray was started anew."""
    files: list[int] = field(default_factory=list)
    """Number of files of each launch that counts, in the study's own folder."""
    problems: list[str] = field(default_factory=list)
    exit_code: int | None = None


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def machines(number: int) -> Iterator[list[Namespace]]:
    """Keep a bridge and so many namespaces on it."""
    made: list[Namespace] = []
    ip("link", "add", BRIDGE, "type", "bridge")
    try:
        ip("addr", "add", f"{HEAD}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for index in range(number):
            made.append(machine := Namespace(f"agn{index}", f"{NETWORK}.{11 + index}"))
            ip("netns", "add", machine.name)
            ip("link", "add", machine.cable, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
            ip("link", "set", machine.cable, "master", BRIDGE, "up")
            for words in (("addr", "add", f"{machine.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
                ip("-n", machine.name, *words)
            ip("-n", machine.name, "link", "set", "lo", "up")
        yield made
    finally:
        for machine in made:
            ip("netns", "del", machine.name)
        ip("link", "del", BRIDGE)


class Cluster:
    """A Ray of a head on this machine, which offers nothing, and one raylet a namespace."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home, self.mark = folder, home, secrets.token_hex(8)
        self.variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self._environment = {**kept, **quiet, **self.variables, MARK: self.mark, "PYTHONPATH": str(ROOT)}
        self._ray = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--object-store-memory=83886080"]

    def start_head(self) -> None:
        """Start the head, as a machine with processes of its own."""
        words = ["--head", f"--node-ip-address={HEAD}", f"--port={PORT}", "--num-cpus=0", "--num-gpus=0"]
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        ray = [*self._ray, *words, "--include-dashboard=false", f"--temp-dir={self.folder / 'ray'}"]
        self._head = self._start([*apart, *ray])

    def start_node(self, machine: Namespace) -> None:
        """Start a node that sees nothing of the others' files but the programs."""
        hidden = (self.folder / "ray", self.home, Path("/dev/shm"))  # noqa: S108 - a machine has its own
        apart = " && ".join(
            [f"hostname {machine.name}", *(f"mkdir -p {path} && mount -t tmpfs none {path}" for path in hidden)]
        )
        ray = [*self._ray, f"--address={HEAD}:{PORT}", f"--node-ip-address={machine.address}", "--num-cpus=2"]
        inside = ["unshare", "--mount", "--uts", "bash", "-c", f"{apart} && exec {' '.join(ray)}"]
        self._start(["ip", "netns", "exec", machine.name, *inside])

    @property
    def said(self) -> Path:
        """What the agent put out."""
        return self.folder / "agent.log"

    def start_agent(self, *words: str) -> subprocess.Popen[bytes]:
        """Start an agent beside the head: it sees the raylet there, to which Ray ties it, and none of the nodes."""
        children = Path(f"/proc/{self._head.pid}/task/{self._head.pid}/children").read_text(encoding="ascii").split()
        beside = ["nsenter", f"--target={children[0]}", "--pid", "--mount"]
        command = [*beside, f"--wdns={ROOT}", sys.executable, "-u", "-m", "agent", *words]
        with self.said.open("ab") as log:
            return subprocess.Popen(command, env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    def end(self) -> None:
        """End everything that was started here."""
        kill_processes(self.mark, variable=MARK)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "ray.log").open("ab") as log:
            return subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, start_new_session=True)


def trials_of(home: Path) -> list[Trial]:
    """Return the trials of the study and its companion as they are stored now."""
    store = read_study(Home.find(str(home)), None, None).store
    return [*store.trials(), *store.probes()]


def at_work(home: Path, made: list[Namespace]) -> tuple[str, Namespace] | None:
    """Return a launch in flight whose engine is up, and where."""
    inodes = {Path(f"/run/netns/{machine.name}").stat().st_ino: machine for machine in made}
    for cookie in running_cookies(home):
        for process in find_processes(cookie):
            with suppress(OSError):
                machine = inodes.get(Path(f"/proc/{process.pid}/ns/net").stat().st_ino)
                if machine is not None:
                    return cookie, machine
    return None


def run(budget: int, number: int) -> Finding:
    """Run the study, pull the cable, put it back, and look."""
    found = Finding(nodes=number)
    folder = Path(tempfile.mkdtemp(prefix="cut-", dir="/tmp"))
    home = folder / "home"
    home.mkdir(mode=0o700)
    cluster = Cluster(folder, home)
    try:
        with machines(number) as made:
            try:
                _study(found, cluster, made, budget, home)
            finally:
                cluster.end()
        found.problems += problems_of(home, budget, is_serial=False)
        counted = [trial for trial in trials_of(home) if trial.counts and trial.study.endswith("/probes") is False]
        found.launches = len(counted)
        found.files = [sum(path.is_file() for path in Path(trial.artifact_dir).rglob("*")) for trial in counted]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _study(found: Finding, cluster: Cluster, made: list[Namespace], budget: int, home: Path) -> None:
    cluster.start_head()
    for machine in made:
        cluster.start_node(machine)
    address = f"{HEAD}:{PORT}"
    eventually(lambda: _num_nodes(address, cluster) == len(made) + 1, PATIENCE_S)
    options = ("--budget", str(budget), "--option", "preset=tiny", "--device", "cpu", "--ray-address", address)
    search = cluster.start_agent("search", *options, "--home", str(home))
    try:
        found_at_work = eventually(lambda: at_work(home, made) or (search.poll() is not None and "ended"), PATIENCE_S)
    except TimeoutError as error:
        said = cluster.said.read_text(encoding="utf-8", errors="replace")
        raise click.ClickException(f"nothing was launched within {PATIENCE_S:.0f} s: {said}") from error
    if isinstance(found_at_work, str):
        raise click.ClickException(f"the search ended before it launched anything: {cluster.said.read_text()}")
    cookie, machine = found_at_work
    ip("link", "set", machine.cable, "down")
    cut_at = time.monotonic()
    eventually(lambda: _losses(home), PATIENCE_S)
    found.queued_again_after_s = round(time.monotonic() - cut_at, 1)
    eventually(lambda: not find_processes(cookie), PATIENCE_S)
    found.engine_ended_after_s = round(time.monotonic() - cut_at, 1)
    ip("link", "set", machine.cable, "up")
    cluster.start_node(machine)
    found.exit_code = search.wait(timeout=END_S)
    said = cluster.said.read_text(encoding="utf-8", errors="replace")
    found.lost_launches = _losses(home)
    found.joined_again = f"node {machine.name} joined: it takes trials" in said
    if search.returncode:
        found.problems.append(said[-4000:])


def _losses(home: Path) -> int:
    outcomes = [trial.outcome for trial in trials_of(home)]
    failures = [outcome.failure for outcome in outcomes if outcome is not None and outcome.failure is not None]
    return sum(failure.reason is Reason.NODE_LOST for failure in failures)


def _num_nodes(address: str, cluster: Cluster) -> int:
    code = f"import ray; ray.init({address!r}, logging_level='ERROR'); print(sum(n['Alive'] for n in ray.nodes()))"
    environment = {**os.environ, **cluster.variables}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return int(said.stdout.split()[-1]) if said.returncode == 0 and said.stdout.strip() else 0


@click.command()
@click.option("--budget", type=int, default=8)
@click.option("--nodes", type=int, default=3)
def main(budget: int, nodes: int) -> None:
    """Print what came of it as JSON."""
    if os.geteuid() != 0:
        raise click.UsageError("network namespaces need root")
    click.echo(json.dumps(asdict(run(budget, nodes))))


if __name__ == "__main__":
    main()
