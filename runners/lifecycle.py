"""The life of one launch, from an empty artifact folder to a clean node; the same for every engine."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from runners.activity import ActivityMeter
from runners.contract import Command, Exit, Leftovers, LogLine, Measurement, Phase, RunRecord, TrialRequest
from runners.cookies import kill_processes
from runners.death_watch import DeathWatch
from runners.environment import added_environment, engine_environment, make_temp_dir, remove_temp_dir
from runners.gpu_memory import GpuMemoryGuard
from runners.launch_plan import LaunchPlan, Watch
from runners.log_follower import LogFollower
from runners.phases import PhaseTracker
from runners.ports import is_listening, listeners
from runners.processes import descendants
from runners.shared_memory import NOTE, SharedMemoryGuard
from runners.stacks import dump_stacks
from runners.warden_client import WardenClient

__all__ = ["LaunchPlan", "Watch", "launch"]

WATCH_INTERVAL_S = 0.05
SAMPLE_INTERVAL_S = 1.0
"""Time between two looks at the CPU time of a silent launch; each look reads all of /proc."""
KILL_TIMEOUT_S = 10.0
GPU_TIMEOUT_S = 10.0
CLIENT_TIMEOUT_S = 10.0
"""How long a load client may take to notice that its engine is gone."""


def launch(request: TrialRequest, command: Command, plan: LaunchPlan) -> RunRecord:
    """Run the command to its end, clean up, and return what was seen, without probe, effects and verdict.

    Raises:
        OSError: the artifact folder cannot be written. Nothing that the engine does raises.
    """
    running = _Launch(request, command, plan)
    try:
        running.watch_to_end()
    finally:
        leftovers = running.clean_up()
    return running.record(leftovers)


class _Launch:
    """One launch under way."""

    def __init__(self, request: TrialRequest, command: Command, plan: LaunchPlan) -> None:
        self._started = time.monotonic()
        self._request, self._command, self._plan = request, command, plan
        self._folder = Path(request.artifact_dir)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._decisive = [re.compile(pattern) for pattern in request.decisive_patterns]
        self._decided_at: float | None = None
        self._cause = "exited"
        self._ended_at: float | None = None
        self._stacks: Path | None = None
        self._client: Future[Measurement | None] | None = None
        self._phases = PhaseTracker(self._folder / "phases.jsonl", plan.phase_patterns, request.deadlines)
        self._log_path = self._folder / "engine.log"
        self._log_path.write_bytes(b"")
        self._shared_memory = SharedMemoryGuard()
        self._is_port_taken = plan.port is not None and is_listening(plan.port)
        self._gpu_memory = _gpu_guard(request, command)
        self._log = LogFollower(self._log_path, self._on_line)
        # Last, since only a warden that knows the folder removes it when this process is killed.
        self._temp_dir = make_temp_dir(request.environment)
        self._env = engine_environment(request, command, self._temp_dir)
        self._warden = self._start_warden()
        self._watch = Watch(self._env, self._log_path, self._temp_dir, self._living)
        self._deaths = DeathWatch(plan.essential) if plan.essential else None
        self._child_died_at: float | None = None
        self._looked_at = 0.0
        self._activity = ActivityMeter(self._warden.pid, time.monotonic)
        self._progress_at = self._sampled_at = time.monotonic()
        self._bytes_at_progress = 0

    def _start_warden(self) -> WardenClient:
        cwd = self._plan.cwd or Path.cwd()
        try:
            return WardenClient(
                self._command.argv,
                self._env,
                cwd=cwd,
                log_path=self._log_path,
                temp_dir=self._temp_dir,
                drain_s=self._plan.drain_s,
            )
        except OSError:
            remove_temp_dir(self._temp_dir)
            raise

    def watch_to_end(self) -> None:
        """Watch until something ends the launch, then stop it."""
        while (cause := self._cause_to_end()) is None:
            has_more = self._log.read()
            self._serve()
            self._attribute_shared_memory()
            self._watch_for_deaths()
            self._warden.listen(0.0 if has_more else WATCH_INTERVAL_S)
        self._cause = cause
        self._ended_at = time.monotonic()
        self._watch.end()
        self._settle_phase()
        if cause in ("deadline", "no_progress"):
            self._dump_stacks()
        self._stop()

    def clean_up(self) -> Leftovers:
        """Kill what is left, remove what it left, and return what could not be removed."""
        self._watch.end()
        self._activity.sample()
        self._warden.close(KILL_TIMEOUT_S)
        left = kill_processes(self._request.cookie, also=self._activity.seen, bound_s=KILL_TIMEOUT_S)
        if self._deaths is not None:
            self._deaths.close()
        pids = {key.pid for key in self._activity.seen}
        self._log.finish()
        remove_temp_dir(self._temp_dir)
        return Leftovers(
            processes=tuple(sorted(key.pid for key in left)),
            shared_memory=self._shared_memory.clean(self._activity.seen),
            gpu_memory_bytes=self._gpu_memory.wait_until_free(pids, GPU_TIMEOUT_S) if self._gpu_memory else 0,
            ports=self._held_ports(pids),
            folders=(str(self._temp_dir),) if self._temp_dir.exists() else (),
        )

    def _held_ports(self, pids: set[int]) -> tuple[int, ...]:
        """Return the engine's port if it is still listened on, unless by a process that is not of this launch."""
        port = self._plan.port
        if port is None or self._is_port_taken or not is_listening(port):
            return ()
        holders = set(listeners(port))
        return (port,) if not holders or holders & pids else ()

    def record(self, leftovers: Leftovers) -> RunRecord:
        """Return the evidence of the ended launch."""
        code, number = self._warden.exit or (None, None)
        requested = self._cause not in ("exited", "lost")
        now = time.monotonic()
        return RunRecord(
            exit=Exit(code=code, signal=number, requested=requested, cause=self._cause),
            phase=self._phases.phase,
            phase_s=self._phases.phase_s,
            argv=self._command.argv,
            env=added_environment(self._request, self._env),
            log_path=str(self._log_path),
            log_lines=self._log.num_lines,
            excerpt=self._log.excerpt,
            stacks_path=str(self._stacks) if self._stacks else None,
            measurement=self._measurement(),
            leftovers=leftovers,
            node=socket.gethostname(),
            wall_s=now - self._started,
            cleanup_s=now - (self._ended_at or now),
        )

    def _cause_to_end(self) -> str | None:
        """Return what ends the launch now, or None. The exit comes first: it is a fact, the others are our patience."""
        if self._warden.exit is not None:
            return "exited"
        if self._warden.is_lost:
            return "lost"
        if self._client is not None and self._client.done() and (self._child_died_at is None or self._measured()):
            return "served"
        if self._plan.is_cancelled():
            return "cancelled"
        if self._decided_at is not None:
            return "decisive_line" if time.monotonic() - self._decided_at > self._plan.decisive_grace_s else None
        if self._child_died_at is not None and time.monotonic() - self._child_died_at > self._plan.death_grace_s:
            return "child_died"
        if self._phases.is_overdue:
            return "deadline"
        return "no_progress" if self._is_stuck() else None

    def _is_stuck(self) -> bool:
        now = time.monotonic()
        if self._watch.is_ready:  # an engine that spins, or logs that it waits, produces nothing
            self._progress_at = max(self._progress_at, self._watch.beat_at or 0.0)
        elif self._log.num_bytes != self._bytes_at_progress:
            self._bytes_at_progress, self._progress_at = self._log.num_bytes, now
        elif now - self._sampled_at > min(SAMPLE_INTERVAL_S, self._request.deadlines.no_progress_s / 4):
            self._sampled_at = now
            if self._activity.sample():
                self._progress_at = now
        return now - self._progress_at > self._request.deadlines.no_progress_s

    def _on_line(self, line: LogLine) -> None:
        self._phases.see(line)
        if self._decided_at is None and any(pattern.search(line.text) for pattern in self._decisive):
            self._decided_at = time.monotonic()
            self._phases.freeze()

    def _serve(self) -> None:
        """Start the client in time, and enter the phases that only it can tell."""
        if self._plan.serve is None or not self._phases.has_reached(self._plan.serve_from):
            return
        if self._client is None:
            self._start_client(self._plan.serve)
        if self._watch.is_ready and not self._phases.has_reached(Phase.READY):
            self._look_at_processes()
            self._phases.enter(Phase.READY)
        if self._phases.has_reached(Phase.READY):
            self._phases.enter(Phase.SERVE)

    def _start_client(self, serve: Callable[[Watch], Measurement | None]) -> None:
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-client")
        self._client = executor.submit(serve, self._watch)
        executor.shutdown(wait=False)

    def _measurement(self) -> Measurement | None:
        """Return what the client measured; what it says about an engine that died under it is not its fault."""
        if self._client is None:
            return None
        if self._cause == "served":
            return self._client.result()
        try:
            error = self._client.exception(timeout=CLIENT_TIMEOUT_S)
        except TimeoutError:
            return None
        return None if error else self._client.result()

    def _measured(self) -> bool:
        client = self._client
        return client is not None and client.done() and client.exception() is None and client.result() is not None

    def _attribute_shared_memory(self) -> None:
        if self._shared_memory.has_news():
            self._shared_memory.attribute(stat.pid for stat in descendants(self._warden.pid))
            self._shared_memory.note(self._folder / NOTE)

    def _watch_for_deaths(self) -> None:
        """Note at once that a worker died, while its parent may take seconds to see it, or never does."""
        if self._deaths is None:
            return
        now = time.monotonic()
        if now - self._looked_at > SAMPLE_INTERVAL_S:
            self._look_at_processes()
        for who in self._deaths.dead():
            self._child_died_at = self._child_died_at or now
            self._phases.freeze()
            self._watch.note(f"[lifecycle] {who} died")

    def _look_at_processes(self) -> None:
        self._looked_at = time.monotonic()
        if self._deaths is not None:
            self._deaths.look(descendants(self._warden.pid))

    def _living(self) -> list[int]:
        return [stat.pid for stat in descendants(self._warden.pid) if not stat.is_zombie]

    def _dump_stacks(self) -> None:
        while self._log.read():
            pass
        path = self._folder / "stacks.txt"
        pids, abort_log = self._living(), self._log_path if self._plan.has_faulthandler else None
        self._stacks = path if dump_stacks(pids, path, tools=self._plan.tools, abort_log=abort_log) else None

    def _settle_phase(self) -> None:
        """Fix the phase in which the launch was decided: what it logs while being stopped is no progress."""
        if self._cause == "served" and self._watch.is_ready and not self._phases.has_reached(Phase.READY):
            self._phases.enter(Phase.READY)  # one completion was all that was asked of it
        if self._cause == "served" and self._measured():
            self._phases.enter(Phase.STOP)
            return
        while self._cause in ("exited", "lost") and self._log.read():
            pass
        self._phases.freeze()

    def _stop(self) -> None:
        """End the launch: wait when it ended by itself, else ask, wait, and kill."""
        if self._cause == "exited":
            self._listen_until_gone(self._plan.drain_s + KILL_TIMEOUT_S)
            return
        self._activity.sample()
        self._warden.terminate()
        self._listen_until_gone(self._request.deadlines.stop_s)
        self._warden.kill()
        self._listen_until_gone(KILL_TIMEOUT_S)
        self._phases.freeze()

    def _listen_until_gone(self, timeout_s: float) -> None:
        self._warden.listen_until(lambda: self._warden.is_gone, timeout_s)


def _gpu_guard(request: TrialRequest, command: Command) -> GpuMemoryGuard | None:
    if request.settings.device != "cuda":
        return None
    return GpuMemoryGuard({**request.environment, **command.env})
