"""What the processes of a hung launch were doing, written down before they are killed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from runners.processes import ProcessStat, read_bytes, read_stat, send_signal

DUMP_TIMEOUT_S = 10.0
TOTAL_TIMEOUT_S = 40.0
"""A launch has up to a few dozen processes; a dump that takes for ever must not keep the node."""
MAX_THREADS = 200
ABORT_TIMEOUT_S = 3.0
"""How long processes may take to write their stacks and die of SIGABRT."""
ABORT_POLL_S = 0.05
MAX_ABORT_BYTES = 1 << 20


def dump_stacks(pids: Iterable[int], path: Path, *, tools: Sequence[Path] = (), abort_log: Path | None = None) -> bool:
    """Write the stacks of these processes to `path`; return False when there was nothing to write.

    Python stacks come from py-spy where it is installed; what the kernel says of each thread is always added.

    Args:
        pids: the processes.
        path: the file to write.
        tools: further folders in which py-spy may lie.
        abort_log: where there is no py-spy, send SIGABRT to the processes, which ends them: Python's faulthandler
            writes their stacks into this log, from where they are moved. None: never do that.
    """
    pids = list(pids)
    spy = _py_spy(tools)
    deadline = time.monotonic() + TOTAL_TIMEOUT_S
    sections = [_process_section(pid, spy if time.monotonic() < deadline else None) for pid in pids]
    if spy is None and abort_log is not None:
        sections.append(_stacks_by_abort(pids, abort_log))
    text = "\n".join(section for section in sections if section)
    if text:
        path.write_text(text, encoding="utf-8")
    return bool(text)


def _stacks_by_abort(pids: Iterable[int], log: Path) -> str:
    """Return what the processes wrote into the log as they died of SIGABRT."""
    start = log.stat().st_size
    asked = [stat for pid in pids if (stat := read_stat(pid)) is not None and send_signal(stat.key, signal.SIGABRT)]
    deadline = time.monotonic() + ABORT_TIMEOUT_S
    while any(_may_still_write(stat) for stat in asked) and time.monotonic() < deadline:
        time.sleep(ABORT_POLL_S)
    with log.open("r+b") as file:
        file.seek(start)
        written = file.read(MAX_ABORT_BYTES).decode(errors="replace").strip()
        file.truncate(start)  # the log is what the engine said unasked, its last words above all
    return f"== what Python wrote at SIGABRT\n{written}\n" if written else ""


def _may_still_write(asked: ProcessStat) -> bool:
    """True while the process lives and runs: one that is stopped, or held by the driver, gets no signal."""
    stat = read_stat(asked.pid)
    return stat is not None and stat.key == asked.key and stat.state not in ("Z", "X", "T", "t", "D")


def _process_section(pid: int, spy: str | None) -> str:
    command = (read_bytes(f"/proc/{pid}/cmdline") or b"").replace(b"\0", b" ").decode(errors="replace").strip()
    threads = sorted(Path(f"/proc/{pid}/task").glob("[0-9]*"), key=lambda task: int(task.name))
    if not command or not threads:
        return ""
    lines = [f"== process {pid}: {command[:500]}"]
    if spy is not None:
        lines.append(_python_stack(spy, pid))
    lines += [_thread_section(task) for task in threads[:MAX_THREADS]]
    return "\n".join(lines) + "\n"


def _python_stack(spy: str, pid: int) -> str:
    argv = [spy, "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=DUMP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"py-spy: {error}"
    return done.stdout if done.returncode == 0 else f"py-spy: {done.stderr.strip()}"


def _thread_section(task: Path) -> str:
    """Return the kernel's view of one thread; the kernel stack is shown to root only and then simply missing."""
    status = _text(task / "status").splitlines()
    state = next((line.removeprefix("State:").strip() for line in status if line.startswith("State:")), "?")
    where = _text(task / "wchan") or "-"
    lines = [
        f"-- thread {task.name} {_text(task / 'comm')}: {state}, in {where}, system call {_text(task / 'syscall')}"
    ]
    return "\n".join(lines + [f"   {frame}" for frame in _text(task / "stack").splitlines()])


def _text(path: Path) -> str:
    return (read_bytes(str(path)) or b"").decode(errors="replace").strip()


def _py_spy(tools: Sequence[Path]) -> str | None:
    beside = [folder / "py-spy" for folder in (Path(sys.executable).parent, *tools)]
    return next((str(path) for path in beside if path.is_file()), None) or shutil.which("py-spy")
