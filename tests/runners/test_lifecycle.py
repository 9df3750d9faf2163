"""The life of a launch: what ends it, what is seen of it, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runners import Command, Deadlines, Measurement, Phase, RunRecord, TrialRequest
from runners.cookies import find_processes
from runners.lifecycle import LaunchPlan, Watch, launch
from runners.processes import ProcessKey, descendants, is_running, read_stat
from runners.shared_memory import SHM_ROOT
from tests.support.launches import FAMILY, make_request, python_command
from tests.support.waiting import wait_until

FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)"
SERVER = "import time\nprint('loading', flush=True)\nprint('ready', flush=True)\ntime.sleep(600)"
PATTERNS = (("loading", Phase.LOAD_WEIGHTS), ("ready", Phase.READY))
PATIENT = Deadlines(stop_s=0.5)


def run(tmp_path: Path, *program: str, plan: LaunchPlan | None = None, **changes: object) -> RunRecord:
    """Launch a Python program and check what holds for every launch: it is over, and nothing is left of it."""
    request = make_request(tmp_path, **changes)  # type: ignore[arg-type]
    record = launch(request, python_command(*program), plan or LaunchPlan(phase_patterns=PATTERNS, drain_s=0.2))
    assert find_processes(request.cookie) == []
    assert record.leftovers.is_clean
    assert not Path(record.env["TMPDIR"]).exists()
    return record


def log_of(tmp_path: Path) -> str:
    path = tmp_path / "artifacts" / "engine.log"
    return path.read_text(errors="replace") if path.exists() else ""


def cancelled_when(condition: Callable[[], bool]) -> LaunchPlan:
    return LaunchPlan(phase_patterns=PATTERNS, is_cancelled=condition)


def test_a_batch_engine_ends_by_itself(tmp_path: Path) -> None:
    record = run(tmp_path, "import os\nprint('loading')\nprint(os.environ['TMPDIR'])\nraise SystemExit(7)")
    assert (record.exit.code, record.exit.signal, record.exit.cause) == (7, None, "exited")
    assert not record.exit.requested
    assert record.phase is Phase.LOAD_WEIGHTS
    assert list(record.phase_s) == [Phase.SPAWN, Phase.LOAD_WEIGHTS]
    assert [line.text for line in record.excerpt] == ["loading", record.env["TMPDIR"]]
    assert record.log_lines == 2
    assert record.wall_s >= sum(record.phase_s.values())


def test_a_crash_is_reported_by_its_signal(tmp_path: Path) -> None:
    record = run(tmp_path, "import os\nos.kill(os.getpid(), 6)")
    assert (record.exit.code, record.exit.signal, record.exit.cause) == (None, signal.SIGABRT, "exited")


def test_a_program_that_cannot_be_started_does_not_raise(tmp_path: Path) -> None:
    record = launch(make_request(tmp_path), Command(argv=("/no/such/engine",)), LaunchPlan())
    assert record.exit.code == 127
    assert "cannot execute" in record.excerpt[-1].text


def test_a_folder_that_cannot_be_written_is_our_own_fault(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    with pytest.raises(OSError, match="artifacts"):
        launch(make_request(tmp_path), Command(argv=("/bin/true",)), LaunchPlan())


def test_daemons_stubborn_children_and_clean_environments_are_gone_after_a_crash(tmp_path: Path) -> None:
    record = run(tmp_path, FAMILY, "os.kill(os.getpid(), signal.SIGKILL)")
    assert (record.exit.signal, record.exit.requested) == (signal.SIGKILL, False)


def test_a_silent_sleeper_is_ended_for_want_of_progress_and_leaves_its_stacks(tmp_path: Path) -> None:
    deadlines = Deadlines(no_progress_s=0.5, stop_s=0.2)
    record = run(tmp_path, "import signal\nsignal.signal(15, signal.SIG_IGN)", FOREVER, deadlines=deadlines)
    assert (record.exit.cause, record.exit.signal, record.exit.requested) == ("no_progress", signal.SIGKILL, True)
    assert record.stacks_path is not None
    stacks = Path(record.stacks_path).read_text()
    assert "time.sleep(600)" in stacks
    assert "-- thread" in stacks


def test_a_silent_worker_is_no_hang_until_its_phase_is_overdue(tmp_path: Path) -> None:
    """A compile prints nothing for minutes and uses the processor: only the deadline of its phase may end it."""
    deadlines = Deadlines(no_progress_s=0.5, phase_s={Phase.LOAD_WEIGHTS: 2.0}, stop_s=0.2)
    record = run(tmp_path, "print('loading', flush=True)\nwhile True: pass", deadlines=deadlines)
    assert (record.exit.cause, record.phase) == ("deadline", Phase.LOAD_WEIGHTS)
    assert record.stacks_path is not None


def test_a_steady_log_is_progress(tmp_path: Path) -> None:
    program = """
        import threading
        for _ in range(20):
            print(".", end="", flush=True)
            threading.Event().wait(0.05)
    """
    record = run(tmp_path, program, deadlines=Deadlines(no_progress_s=0.5))
    assert record.exit.cause == "exited"
    assert record.log_lines == 1


def test_a_decisive_line_ends_the_wait_with_the_rest_of_the_traceback(tmp_path: Path) -> None:
    program = "import time\nprint('loading\\nCUDA out of memory', flush=True)\nprint('the rest\\nready', flush=True)"
    plan = LaunchPlan(phase_patterns=PATTERNS, decisive_grace_s=0.3)
    record = run(tmp_path, program, FOREVER, plan=plan, decisive_patterns=(r"out of m.mory", "never"))
    assert (record.exit.cause, record.exit.requested) == ("decisive_line", True)
    assert record.phase is Phase.LOAD_WEIGHTS, "what is logged after the decisive line is no progress"
    assert "the rest" in [line.text for line in record.excerpt]


def test_an_exit_within_the_grace_is_an_exit(tmp_path: Path) -> None:
    record = run(tmp_path, "print('CUDA out of memory')\nraise SystemExit(1)", decisive_patterns=("out of memory",))
    assert (record.exit.cause, record.exit.code, record.exit.requested) == ("exited", 1, False)


def test_any_bytes_may_be_logged(tmp_path: Path) -> None:
    program = r"""
        import sys
        sys.stdout.buffer.write(b"\xff\xfe bad\n" + b"x" * 50_000_000 + b"\nready\n")
    """
    record = run(tmp_path, program)
    assert (record.phase, record.log_lines) == (Phase.READY, 3)
    assert record.excerpt[0].text == "�� bad"
    assert Path(record.log_path or "").stat().st_size > 50_000_000


def test_a_cancelled_launch_is_stopped_politely(tmp_path: Path) -> None:
    program = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(5))"
    record = run(tmp_path, program, FOREVER, plan=cancelled_when(lambda: "up" in log_of(tmp_path)))
    assert (record.exit.cause, record.exit.code, record.exit.requested) == ("cancelled", 5, True)


def test_a_keyboard_interrupt_cleans_up_and_goes_on(tmp_path: Path) -> None:
    def interrupt() -> bool:
        if "up" in log_of(tmp_path):
            raise KeyboardInterrupt
        return False

    request = make_request(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        launch(request, python_command(FAMILY, FOREVER), cancelled_when(interrupt))
    assert find_processes(request.cookie) == []


def test_a_killed_warden_is_a_lost_launch(tmp_path: Path) -> None:
    request = make_request(tmp_path, deadlines=Deadlines(stop_s=0.2))
    family: list[ProcessKey] = []

    def kill_warden() -> bool:
        marked = find_processes(request.cookie)
        if "up" in log_of(tmp_path) and len(marked) == 5 and not family:
            family.extend(marked)
            wardens = [stat for key in marked if (stat := read_stat(key.pid)) and stat.parent == os.getpid()]
            os.kill(wardens[0].pid, signal.SIGKILL)
        return False

    program = FAMILY.replace("env={}, ", "")  # an unmarked child whose parents are all dead cannot be found any more
    record = launch(request, python_command(program, FOREVER), cancelled_when(kill_warden))
    assert (record.exit.cause, record.exit.requested) == ("lost", False)
    assert record.leftovers.is_clean
    assert family
    assert not any(is_running(key) for key in family)


def test_nothing_outlives_a_killed_owner(tmp_path: Path) -> None:
    request = make_request(tmp_path)
    owner = """
import sys
from runners import TrialRequest
from runners.lifecycle import LaunchPlan, launch
from tests.support.launches import FAMILY, python_command
from tests.runners.test_lifecycle import FOREVER
launch(TrialRequest.model_validate_json(sys.argv[1]), python_command(FAMILY, FOREVER), LaunchPlan())
"""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen([sys.executable, "-c", owner, request.model_dump_json()], env=environment) as process:
        wait_until(lambda: "up" in log_of(tmp_path))
        below = [stat.key for stat in descendants(process.pid)]
        process.kill()
        wait_until(lambda: not any(is_running(key) for key in below))
    wait_until(lambda: not find_processes(request.cookie))


def test_shared_memory_of_a_killed_child_is_removed_and_nobody_else_s(tmp_path: Path) -> None:
    name = f"psm_{os.urandom(8).hex()}"
    others = SHM_ROOT / f"others-{name}"
    program = f"""
        import os, time
        from multiprocessing import resource_tracker, shared_memory
        segment = shared_memory.SharedMemory({name!r}, create=True, size=1 << 20)
        open({str(others)!r}, "w").close()
        print("up", flush=True)
        time.sleep(600)
    """
    try:
        record = run(tmp_path, program, plan=cancelled_when(lambda: "up" in log_of(tmp_path)))
        assert record.exit.cause == "cancelled"
        assert not (SHM_ROOT / name).exists()
        assert others.exists()
    finally:
        others.unlink(missing_ok=True)


class TestServing:
    """A server is measured by a client that runs while the process is watched."""

    def serve_plan(self, serve: Callable[[Watch], Measurement | None]) -> LaunchPlan:
        return LaunchPlan(phase_patterns=PATTERNS, serve=serve, drain_s=0.2)

    def test_it_is_stopped_when_the_client_is_done(self, tmp_path: Path) -> None:
        measurement = Measurement(levels=(), extra={"floor_ms": 1.0})
        record = run(tmp_path, SERVER, plan=self.serve_plan(lambda watch: measurement))
        assert (record.exit.cause, record.exit.signal, record.exit.requested) == ("served", signal.SIGTERM, True)
        assert record.measurement == measurement
        assert record.phase is Phase.STOP
        assert {Phase.LOAD_WEIGHTS, Phase.SERVE, Phase.STOP} <= record.phase_s.keys()

    def test_a_client_is_told_when_its_server_dies(self, tmp_path: Path) -> None:
        told = threading.Event()

        def serve(watch: Watch) -> None:
            (tmp_path / "request").touch()
            if watch.wait(20.0) and watch.is_over:
                told.set()
            raise ConnectionError("refused")

        program = f"""
            import os, time
            print("ready", flush=True)
            while not os.path.exists({str(tmp_path / "request")!r}):
                time.sleep(0.01)
        """
        record = run(tmp_path, program, plan=self.serve_plan(serve))
        assert (record.exit.cause, record.exit.code, record.measurement) == ("exited", 0, None)
        assert told.is_set()

    def test_an_error_of_the_client_itself_is_raised_after_the_clean_up(self, tmp_path: Path) -> None:
        def serve(watch: Watch) -> None:
            raise ZeroDivisionError

        request: TrialRequest = make_request(tmp_path, deadlines=PATIENT)
        with pytest.raises(ZeroDivisionError):
            launch(request, python_command(SERVER), self.serve_plan(serve))
        assert find_processes(request.cookie) == []
