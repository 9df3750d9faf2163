"""GPUs that an agent holds for itself: against other processes, and given back however it ends."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners.gpu_claims import GpuClaims, GpuTakenError

REPOSITORY = Path(__file__).parents[2]
HOLD = """
import signal, sys
from runners.gpu_claims import GpuClaims
claims = GpuClaims({1: sys.argv[1]})
claims.take()
print("held", flush=True)
signal.pause()
"""


@contextmanager
def holder(identity: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a GPU."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, identity], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def names() -> dict[int, str]:
    """Two GPUs that nobody else knows."""
    return {gpu: secrets.token_hex(8) for gpu in (0, 1)}


def test_a_gpu_of_another_agent_is_refused_with_the_process_and_the_way_on(names: dict[int, str]) -> None:
    with holder(names[1]) as other, pytest.raises(GpuTakenError) as caught:
        GpuClaims(names).take()
    for words in ("GPU 1", f"process {other.pid}", "CUDA_VISIBLE_DEVICES"):
        assert words in str(caught.value)


def test_who_is_refused_one_holds_none(names: dict[int, str]) -> None:
    with holder(names[1]):
        with pytest.raises(GpuTakenError):
            GpuClaims(names).take()
        first = GpuClaims({0: names[0]})
        first.take()
        first.release()


def test_a_killed_agent_holds_nothing(names: dict[int, str]) -> None:
    with holder(names[1]) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        claims = GpuClaims(names)
        claims.take()
        claims.release()
        claims.take()  # given back means free for everybody
        claims.release()


def test_what_an_agent_starts_does_not_hold_its_gpus(names: dict[int, str]) -> None:
    """An engine that outlives its agent keeps its memory, not the claim."""
    claims = GpuClaims(names)
    claims.take()
    says = "import signal; print('up', flush=True); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", says], close_fds=False, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"  # a process that is just being started may still hold everything
    claims.release()
    try:
        claims.take()
        claims.release()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
