"""One server from its own word that it is up to the end of the load: is it ours, does it serve, what is measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from runners import server_info
from runners.contract import Measurement
from runners.launch_plan import Watch
from runners.load_client import (
    BENCHMARK_ERROR,
    LoadJob,
    LoadResult,
    NotServedError,
    load_command,
    measurement_of,
    read_result,
    serve_one_completion,
)
from runners.ports import listeners
from runners.warden_client import WardenClient

POLL_S = 0.1
CLOSE_TIMEOUT_S = 5.0
MAX_TAIL_CHARS = 400
OUR_SOURCES = Path(__file__).parents[1]


class ServerSession:
    """What happens between a server and its load client; `serve` is the `serve` of a launch plan."""

    def __init__(
        self,
        job: LoadJob,
        port: int,
        folder: Path,
        *,
        completion_timeout_s: float,
        death_report_s: float,
        is_loaded: bool = True,
        info_paths: Sequence[str] = (),
        info_names: Collection[str] = (),
    ) -> None:
        """Prepare.

        Args:
            job: the load.
            port: where the server listens on the loopback interface.
            folder: for the client's job, result and log.
            completion_timeout_s: how long the first completion may take; the phase's deadline ought to be shorter,
                since it is the one that looks at stacks.
            death_report_s: how long the server may take to die after it failed a request: what dies within that
                time failed by itself, and the client has nothing to report.
            is_loaded: False where one completion is all that is asked of the server.
            info_paths: pages on which the server says what it runs, the newest first.
            info_names: what of it is kept.
        """
        self._job, self._port, self._folder = job, port, folder
        self._timeout_s, self._death_report_s = completion_timeout_s, death_report_s
        self._info_paths, self._info_names = info_paths, info_names
        self.is_loaded = is_loaded
        self.has_completed = False
        """Whether the server served its first completion."""
        self.result: LoadResult | None = None
        """What the client brought back."""
        self._lost = ""
        """How the client ended, for the case that it brought nothing."""

    def serve(self, watch: Watch) -> Measurement | None:
        """Wait until the server has served one completion, run the load, and return what was measured.

        Returns None when there is nothing to measure; why stands in the engine's log.
        """
        if not self._wait_for_our_listener(watch):
            return None
        try:
            serve_one_completion(self._job.base_url, self._job.api, self._job.model, self._timeout_s)
        except NotServedError as error:
            self._blame_server_first(watch, f"the first completion was not served: {error}")
            return None
        if watch.is_over:
            return None
        self.has_completed = True
        watch.ready()
        self._ask_what_runs(watch)
        if not self.is_loaded:
            return None
        self._run_client(watch)
        if watch.is_over:
            return None
        if self.result is None:
            watch.note(f"{BENCHMARK_ERROR} {self._lost}")
        elif self.result.problem is not None:
            self._blame_server_first(watch, self.result.problem)
        else:
            return measurement_of(self.result)
        return None

    def _wait_for_our_listener(self, watch: Watch) -> bool:
        """Wait until a process of the launch listens on the port; its own word for it may come a little earlier."""
        while not listeners(self._port, watch.pids()):
            if strangers := listeners(self._port):
                watch.note(f"[lifecycle] port {self._port} is served by another process: {strangers}")
                return False
            if watch.wait(POLL_S):
                return False
        return True

    def _ask_what_runs(self, watch: Watch) -> None:
        """Keep the server's own answer; without one the log has to do."""
        if not self._info_paths:
            return
        try:
            server_info.save(self._folder, server_info.ask(self._job.base_url, self._info_paths, self._info_names))
        except server_info.NoInfoError as error:
            watch.note(f"[lifecycle] the server does not say what it runs: {' '.join(str(error).split())}")

    def _run_client(self, watch: Watch) -> None:
        """Run the client as a process of the launch and take what it brings back."""
        log = self._folder / "load-client.log"
        argv = load_command(self._job, self._folder)
        environment = {**watch.environment, "PYTHONPATH": str(OUR_SOURCES)}
        own_folder = watch.temp_dir / "load-client"  # not the launch's: this warden may remove it
        client = WardenClient(argv, environment, cwd=self._folder, log_path=log, temp_dir=own_folder)
        try:
            self._wait_for_client(client, watch, log)
        finally:
            client.close(CLOSE_TIMEOUT_S)
        self.result = read_result(self._folder)
        code, signal_number = client.exit or (None, None)
        end = f"signal {signal_number}" if code is None else f"code {code}"
        self._lost = f"the load client ended with {end} and without a result: {_tail(log)}"

    def _wait_for_client(self, client: WardenClient, watch: Watch, log: Path) -> None:
        """Wait for the client's end or the launch's; what the client writes is a sign of the server's life."""
        written = 0
        while client.exit is None and not client.is_over and not watch.is_over:
            client.listen(POLL_S)
            if (size := log.stat().st_size) != written:
                written = size
                watch.beat()

    def _blame_server_first(self, watch: Watch, problem: str) -> None:
        """Give the server time to die of what the client saw; only one that lives on makes it the client's problem."""
        if not watch.wait(self._death_report_s):
            watch.note(f"{BENCHMARK_ERROR} {' '.join(problem.split())}")


def _tail(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return " ".join(text.split())[-MAX_TAIL_CHARS:]
