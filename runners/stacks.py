"""What the processes of a hung launch were doing, written down before they are killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from runners.processes import read_bytes

DUMP_TIMEOUT_S = 10.0
TOTAL_TIMEOUT_S = 40.0
"""A launch has up to a few dozen processes; a dump that takes for ever must not keep the node."""
MAX_THREADS = 200


def dump_stacks(pids: Iterable[int], path: Path) -> bool:
    """Write the stacks of these processes to `path`; return False when there was nothing to write.

    Python stacks come from py-spy where it is installed; what the kernel says of each thread is always added.
    """
    spy = _py_spy()
    deadline = time.monotonic() + TOTAL_TIMEOUT_S
    sections = [_process_section(pid, spy if time.monotonic() < deadline else None) for pid in pids]
    text = "\n".join(section for section in sections if section)
    if text:
        path.write_text(text, encoding="utf-8")
    return bool(text)


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


def _py_spy() -> str | None:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.is_file() else shutil.which("py-spy")
