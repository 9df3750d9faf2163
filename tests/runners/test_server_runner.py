"""The life of a server: which port, whose socket, what ready means, who is to blame, and that nothing is left."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent.classify import classify
from agent.outcome import Failure, OutcomeKind
from agent.reasons import Reason
from runners import Deadlines, EngineSettings, Phase, RunRecord, TrialRequest, Workload, server_info
from runners.cookies import find_processes
from runners.ports import free_port, is_listening, listeners
from runners.processes import read_bytes
from runners.vllm_runner import VllmRunner
from tests.support.launches import make_request
from tests.support.stub_engine import StubEngine, with_worker
from tests.support.waiting import wait_until

SHORT = Workload(concurrency=(1, 2), prompt_tokens=8, output_tokens=16, requests=4)
LONG = Workload(concurrency=(1,), prompt_tokens=8, output_tokens=4000, requests=200)


def request_of(folder: Path, **changes: object) -> TrialRequest:
    """Return a request for a short load with short deadlines."""
    fields: dict[str, object] = {
        "settings": EngineSettings(engine="stub", num_ranks=1, device="cpu", model="stub"),
        "workload": SHORT,
        "deadlines": Deadlines(stop_s=0.5, no_progress_s=15.0, phase_default_s=60.0),
        "environment": {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(folder / "cache")},
    }
    return make_request(folder, **{**fields, **changes})  # type: ignore[arg-type]


def run(engine: StubEngine, request: TrialRequest) -> RunRecord:
    """Run and check what holds for every launch: it is over, and nothing is left of it."""
    record = engine.run(request)
    assert find_processes(request.cookie) == []
    assert record.leftovers.is_clean
    assert "TMPDIR" not in record.env or not Path(record.env["TMPDIR"]).exists()
    return record


def failure_of(record: RunRecord) -> Failure:
    failure = classify(record).failure
    assert failure is not None
    return failure


def log_of(request: TrialRequest) -> str:
    return (Path(request.artifact_dir) / "engine.log").read_text()


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do something while the launch runs, and fail with what went wrong in there."""
    errors: list[BaseException] = []

    def act() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the test's own thread
            errors.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()
    if errors:
        raise errors[0]


def wait_for_serving(request: TrialRequest) -> None:
    path = Path(request.artifact_dir) / "phases.jsonl"
    wait_until(lambda: path.exists() and '"serve"' in path.read_text())


def kill(request: TrialRequest, argument: str) -> None:
    """Kill the process of the launch that has this argument (a worker's only one is its title)."""

    def find() -> list[int]:
        lines = {key.pid: read_bytes(f"/proc/{key.pid}/cmdline") or b"" for key in find_processes(request.cookie)}
        return [pid for pid, line in lines.items() if argument.encode() in line.split(b"\0")]

    os.kill(wait_until(find)[0], signal.SIGKILL)


def test_a_server_is_launched_loaded_and_stopped(tmp_path: Path) -> None:
    request = request_of(tmp_path)
    record = run(StubEngine(), request)
    assert (record.exit.cause, record.exit.requested, record.phase) == ("served", True, Phase.STOP)
    assert list(record.phase_s)[-4:] == [Phase.WARMUP, Phase.READY, Phase.SERVE, Phase.STOP]
    assert record.measurement is not None
    assert [level.concurrency for level in record.measurement.levels] == [1, 2]
    assert classify(record).kind is OutcomeKind.MEASURED
    assert [proof.parameter for proof in record.effects] == ["port"]
    assert record.env["TRITON_CACHE_DIR"].startswith(str(tmp_path / "cache"))
    assert 0 < record.cleanup_s < record.wall_s


class Telling(StubEngine):
    """A stub that is asked what it runs."""

    info_paths = ("/no_such_page", "/server_info")
    info_names = ("ep_size", "tp_size", "cuda_graph_bs", "moe_a2a_backend")


def test_a_server_that_serves_is_asked_what_it_runs(tmp_path: Path) -> None:
    """The first page that it has counts; only what was asked for is kept, so none of its keys."""
    run(Telling(), request_of(tmp_path))
    assert server_info.saved(tmp_path / "artifacts") == {"ep_size": "none", "tp_size": 1}
    assert "sesame" not in (tmp_path / "artifacts" / server_info.FILE).read_text(encoding="utf-8")


def test_a_server_that_does_not_say_what_it_runs_is_measured_all_the_same(tmp_path: Path) -> None:
    """Its log has to do, and says that there is nothing else."""
    engine = Telling()
    engine.info_paths = ("/no_such_page",)
    record = run(engine, request_of(tmp_path))
    assert classify(record).kind is OutcomeKind.MEASURED
    assert server_info.saved(tmp_path / "artifacts") == {}
    log = Path(record.log_path or "").read_text(encoding="utf-8")
    assert "[lifecycle] the server does not say what it runs: /no_such_page: HTTP Error 404" in log


def test_a_port_taken_in_the_last_moment_costs_another_try(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((taken.getsockname()[1], free_port()))

        def choose(distances: Sequence[int], within: object) -> int:
            return next(ports)

        record = run(StubEngine(choose), request_of(tmp_path))
    assert classify(record).kind is OutcomeKind.MEASURED
    assert "address already in use" in (tmp_path / "artifacts" / "engine.attempt-1.log").read_text()


def test_a_port_that_stays_taken_is_nobody_s_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        record = run(StubEngine(lambda distances, within: int(taken.getsockname()[1])), request_of(tmp_path))
    assert failure_of(record).reason is Reason.PORT_OR_STALE_PROCESS


def test_another_server_on_the_port_is_never_measured(tmp_path: Path) -> None:
    """The engine says that it is ready, and somebody else answers."""
    pretender = ("/bin/sh", "-c", 'echo "listening on it"; exec sleep 600', "sh")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        record = run(StubEngine(lambda distances, within: port, prefix=pretender), request_of(tmp_path))
        assert listeners(port) == [os.getpid()]
    assert record.measurement is None
    assert (failure_of(record).rule, record.phase) == ("F002", Phase.WARMUP)


def test_a_server_killed_under_load_is_the_engine_s_failure(tmp_path: Path) -> None:
    request = request_of(tmp_path)
    record = run(StubEngine(fault="die", fault_at=3), request)
    assert (record.exit.signal, record.exit.requested, record.phase) == (signal.SIGKILL, False, Phase.SERVE)
    assert failure_of(record).reason is Reason.PROCESS_KILLED
    assert "benchmark error" not in log_of(request)


def test_a_server_that_lives_and_fails_a_request_is_a_benchmark_error(tmp_path: Path) -> None:
    record = run(StubEngine(fault="error_500", fault_at=3), request_of(tmp_path))
    assert (record.exit.cause, record.measurement, record.phase) == ("served", None, Phase.SERVE)
    assert failure_of(record).reason is Reason.BENCHMARK_ERROR


def test_a_killed_load_client_is_a_benchmark_error(tmp_path: Path) -> None:
    request = request_of(tmp_path, workload=LONG)

    def kill_client() -> None:
        wait_for_serving(request)
        kill(request, "runners.load_client")

    with meanwhile(kill_client):
        record = run(StubEngine(step_ms=5), request)
    assert failure_of(record).reason is Reason.BENCHMARK_ERROR
    assert "signal 9 and without a result" in log_of(request)


def test_a_dead_worker_under_a_living_leader_ends_the_launch(tmp_path: Path) -> None:
    """Some engines' leaders go on listening over a dead worker for ever."""
    request = request_of(tmp_path, workload=LONG)

    def kill_worker() -> None:
        wait_for_serving(request)
        kill(request, "stub::worker")

    engine = StubEngine(prefix=with_worker(), step_ms=5)
    with meanwhile(kill_worker):
        record = run(engine, request)
    assert (record.exit.cause, record.phase) == ("child_died", Phase.SERVE)
    assert failure_of(record).rule == "F001"


def test_a_server_that_stalls_under_load_has_made_no_progress(tmp_path: Path) -> None:
    """A server that burns processor time and logs that it waits is no further than a silent one."""
    deadlines = Deadlines(stop_s=0.2, no_progress_s=2.0, phase_default_s=60.0)
    request = request_of(tmp_path, deadlines=deadlines)
    record = run(StubEngine(fault="stall", fault_at=3), request)
    assert (record.exit.cause, record.phase) == ("no_progress", Phase.SERVE)
    assert record.stacks_path is not None
    assert failure_of(record).reason in (Reason.COLLECTIVE_TIMEOUT, Reason.SERVER_HANG)


def test_ready_means_that_a_completion_was_served(tmp_path: Path) -> None:
    deadlines = Deadlines(stop_s=0.2, no_progress_s=30.0, phase_s={Phase.WARMUP: 1.0}, phase_default_s=60.0)
    record = run(StubEngine(fault="silent"), request_of(tmp_path, deadlines=deadlines))
    assert (record.exit.cause, record.phase) == ("deadline", Phase.WARMUP)
    assert Phase.READY not in record.phase_s


def test_an_engine_that_cannot_be_told_is_refused_with_a_reason(tmp_path: Path) -> None:
    class Strict(StubEngine):
        def server_command(self, request: TrialRequest, port: int) -> object:  # type: ignore[override]
            raise ValueError("--frobnicate: stub 1.0 knows no such option")

    record = run(Strict(), request_of(tmp_path))
    failure = failure_of(record)
    assert (failure.reason, failure.blames, record.phase) == (Reason.CONFIG_INVALID, ("frobnicate",), Phase.RESOLVE)


def test_an_engine_that_is_not_there_is_a_missing_dependency(tmp_path: Path) -> None:
    settings = EngineSettings(engine="vllm", num_ranks=1, device="cpu", model="/m", python=sys.executable)
    record = VllmRunner().run(request_of(tmp_path, settings=settings))
    assert failure_of(record).reason is Reason.MISSING_DEPENDENCY
    assert "pip install vllm" in record.excerpt[0].text


def test_simulated_acceptance_is_refused_unless_the_study_asks_for_it(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SGLANG_SIMULATE_ACC_LEN": "3.2"}
    record = run(StubEngine(), request_of(tmp_path / "refused", environment=environment))
    assert failure_of(record).reason is Reason.CONFIG_INVALID
    assert "SGLANG_SIMULATE_ACC_LEN=3.2" in record.excerpt[0].text
    settings = EngineSettings(
        engine="stub", num_ranks=1, device="cpu", model="stub", options={"simulate_acceptance": 2.5}
    )
    labelled = run(StubEngine(), request_of(tmp_path / "asked", settings=settings))
    assert labelled.measurement is not None
    assert labelled.measurement.extra["simulated_acceptance_length"] == 2.5
    assert labelled.effects[-1].parameter == "simulate_acceptance"


def test_the_collectives_of_an_unknown_server_are_not_probed(tmp_path: Path) -> None:
    (record,) = StubEngine().run_probes([request_of(tmp_path)])
    assert record.not_probed is not None and "stub" in record.not_probed
    assert classify(record).kind is OutcomeKind.NOT_PROBED


def test_a_free_port_is_free_and_nobody_s() -> None:
    port = free_port((1, 2))
    assert not is_listening(port)
    with socket.create_server(("127.0.0.1", port)):
        assert listeners(port) == [os.getpid()]
        assert listeners(port, [1]) == []
