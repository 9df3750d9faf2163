"""A warm process in the user's Python that resolves the arguments of launches, each in a forked child of its own.

It is started by the first question, imports the engine once (10 to 20 s), and then answers in 0.1 to 0.3 s. It ends
when its standard input does, so also with this process; whatever it started carries the session's mark as well.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from runners.cookies import KEEP_ENVIRON, SESSION_VARIABLE
from runners.engine_dialects.engine_options import MARK, EngineNotUsableError
from runners.environment import DEFAULTS, OFFLINE, make_temp_dir, remove_temp_dir
from runners.frozen import Frozen

SCRIPT = Path(__file__).parent / "inside" / "resolve.py"
START_TIMEOUT_S = 300.0
"""A first import of an engine from a cold disk takes a minute and more."""
ORDER_TIMEOUT_S = 20.0
"""How long one child may take: what resolves at all is done in two seconds, also on a busy machine."""
FIRST_TIMEOUT_S = 180.0
"""The same until something was resolved: vLLM inspects the model's class in a process of its own, and remembers it."""
ANSWER_MARGIN_S = 30.0
"""How much longer the warm process itself may take to answer: it imports what a child needed."""
STOP_TIMEOUT_S = 2.0


class Answer(Frozen):
    """What came of the arguments of one launch."""

    id: str
    end: Literal["resolved", "refused", "no_answer"]
    """Whether the engine took them, refused them, or said nothing in time."""
    code: int | None = None
    signal: int | None = None
    seconds: float
    values: Mapping[str, object] = {}
    """Option → the value that stands in the resolved configuration."""
    fingerprint: str = ""


class WarmResolver:
    """The process and our end of its pipes. One question at a time."""

    def __init__(self, engine: str, python: str, environment: Mapping[str, str]) -> None:
        """Prepare; nothing is started yet.

        Args:
            engine: `sglang` or `vllm`.
            python: Python of the environment that holds the engine.
            environment: The environment in which the engine would be launched.
        """
        self._engine, self._python = engine, python
        self._environment = {name: text for name, text in environment.items() if not name.startswith("RAY_")}
        self._process: subprocess.Popen[bytes] | None = None
        self._temp_dir: Path | None = None
        self._unread = b""
        self._has_resolved = False

    def resolve(
        self, name: str, argv: Sequence[str], variables: Mapping[str, str], options: Sequence[str], log: Path
    ) -> Answer:
        """Return what the engine makes of the arguments of one launch.

        Args:
            name: Name of the launch, for its answer.
            argv: The arguments, without Python and module.
            variables: What is set on top of the environment.
            options: Long options whose resolved values are wanted, without dashes.
            log: File for what the engine prints.

        Raises:
            EngineNotUsableError: the engine cannot be imported there.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        order = {
            "id": name,
            "argv": list(argv),
            "env": dict(variables),
            "options": list(options),
            "log": str(log),
            "timeout_s": ORDER_TIMEOUT_S if self._has_resolved else FIRST_TIMEOUT_S,
        }
        started = time.monotonic()
        line = self._ask(json.dumps(order), float(str(order["timeout_s"])) + ANSWER_MARGIN_S)
        if line is None:  # not even the warm process answers: the next question begins with a new one
            self.close()
            return Answer(id=name, end="no_answer", seconds=time.monotonic() - started)
        answer = Answer.model_validate_json(line)
        self._has_resolved |= answer.end == "resolved"
        return answer

    def kill(self) -> None:
        """End the process at once, while another thread waits for its answer; `close` is still to come."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and everything that it started."""
        process, self._process, self._unread = self._process, None, b""
        if process is not None:
            with suppress(BrokenPipeError):
                if process.stdin is not None:
                    process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._temp_dir is not None:
            remove_temp_dir(self._temp_dir)
            self._temp_dir = None

    def _start(self) -> None:
        self.close()
        self._temp_dir = make_temp_dir(self._environment)
        said = self._temp_dir / "said"
        with said.open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    [self._python, str(SCRIPT), self._engine],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._whole_environment(self._temp_dir),
                    start_new_session=True,
                )
            except OSError as error:
                self.close()
                raise EngineNotUsableError(f"{self._python} cannot be run: {error.strerror}") from error
        if self._read_line(START_TIMEOUT_S) is None:
            last = (said.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            self.close()
            raise EngineNotUsableError(f"{self._engine} in {self._python} cannot be imported: {last}")

    def _whole_environment(self, temp_dir: Path) -> dict[str, str]:
        offline = {} if "HF_HUB_OFFLINE" in self._environment else OFFLINE
        session = os.environ.get(SESSION_VARIABLE)
        marks = {"TMPDIR": str(temp_dir), **KEEP_ENVIRON, **({SESSION_VARIABLE: session} if session else {})}
        return {**DEFAULTS, **offline, **self._environment, **marks}

    def _ask(self, order: str, timeout_s: float) -> bytes | None:
        process = self._process
        if process is None or process.stdin is None:
            return None
        try:
            process.stdin.write(order.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._read_line(timeout_s)

    def _read_line(self, timeout_s: float) -> bytes | None:
        """Return the content of the next line that is meant for us; None when none comes in time or ever."""
        process, deadline = self._process, time.monotonic() + timeout_s
        while process is not None and process.stdout is not None:
            line, found, rest = self._unread.partition(b"\n")
            if found:
                self._unread = rest
                if line.startswith(MARK.encode()):
                    return line[len(MARK) :]
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                return None
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                return None
            self._unread += part
        return None
