"""A log alone: whether the launch failed at all, why, and that nothing in it can break the answer."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.classify import Diagnosis, diagnose
from agent.classify.collector import _MAX_BENIGN, MAX_HITS_PER_RULE
from agent.classify.log_files import open_log
from agent.errors import UsageError
from agent.reasons import Policy, Reason
from runners import Phase

READY = "[2026-01-01 09:31:47] The server is fired up and ready to roll!\n"
LOADING = "[2026-01-01 09:00:00 TP0] Load weight begin. avail mem=46.93 GB\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.\n"


def of(text: str, exit_code: int | None = None) -> Diagnosis:
    return diagnose(io.BytesIO(text.encode()), exit_code=exit_code)


def reason(text: str, exit_code: int | None = None) -> str:
    failure = of(text, exit_code).failure
    return failure.reason.value if failure else "none"


def test_what_stands_above_the_ready_line_was_survived() -> None:
    """A launch that became ready did not fail from an exception that it caught before."""
    assert reason(OOM + READY) == "none"
    assert reason(READY + OOM) == "gpu_oom"


def test_a_survived_line_explains_a_failure_that_nothing_else_explains() -> None:
    """The exit code says that it failed, and there is no other line."""
    assert reason(OOM + READY, exit_code=1) == "gpu_oom"


def test_exit_code_0_is_no_success_when_a_process_died_unasked() -> None:
    """vLLM's API server ends with code 0 after its engine was killed."""
    died = "(APIServer pid=1) WARNING: engine core exited unexpectedly; starting cleanup\n"
    lines = READY + died.replace("WARNING: ", "") + "vllm.v1.engine.exceptions.EngineDeadError: dead\n"
    assert reason(lines, exit_code=0) == "process_killed"


def test_what_processes_say_after_a_stop_that_was_asked_for_is_no_failure() -> None:
    """The same lines after SIGTERM belong to a clean end."""
    asked = "(EngineCore pid=2) [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    assert reason(READY + asked + "vllm.v1.engine.exceptions.EngineDeadError: dead\n", exit_code=0) == "none"


@pytest.mark.parametrize(("exit_code", "expected"), [(-9, "process_killed"), (137, "process_killed"), (1, "unknown")])
def test_an_exit_code_alone_says_little(exit_code: int, expected: str) -> None:
    """Signal 9 is not out of memory by itself."""
    assert reason(LOADING, exit_code) == expected


def test_a_log_that_ends_before_ready_without_an_error_hangs_in_its_last_phase() -> None:
    """The last line shows where."""
    found = of(LOADING + "[2026-01-01 09:00:09 TP0] Memory pool end. avail mem=69.02 GB\n")
    assert found.failure is not None
    assert (found.failure.reason, found.phase, found.failure.confidence) == (Reason.SERVER_HANG, Phase.COMPILE, 0.5)
    assert found.failure.decisive is not None
    assert found.failure.decisive.number == 2


@pytest.mark.parametrize("text", ["", "\n\n", "hello\n", "\x00\xff\xfe"])
def test_a_log_that_shows_nothing_known_is_unknown(text: str) -> None:
    """Neither a failure nor a healthy launch may be invented."""
    assert reason(text) == "unknown"


def test_a_wrapper_is_followed_to_the_cause() -> None:
    """Who only noticed a failure is not its reason, wherever the line stands."""
    noticed = "[2026-01-01 05:11:11] Received sigquit from a child process. It usually means the child failed.\n"
    assert reason(noticed + OOM + noticed) == "gpu_oom"


def test_a_transient_failure_is_never_dead_at_once() -> None:
    """A race for a compile cache has a reason whose other failures are dead at once."""
    line = "FileNotFoundError: [Errno 2] No such file: '/home/u/.triton/cache/x/k.json.tmp.pid_1'\n"
    failure = of(line).failure
    assert failure is not None
    assert (failure.reason, failure.policy) == (Reason.JIT_COMPILE_ERROR, Policy.RETRY_ONCE)


def test_the_innermost_frame_tells_settings_from_engine() -> None:
    """The same exception means one thing where arguments are read and another where a kernel runs."""
    text = 'Traceback (most recent call last):\n  File "/opt/sglang/srt/{}", line 7, in f\nRuntimeError: odd\n'
    assert reason(text.format("server_args.py")) == "config_invalid"
    assert reason(text.format("layers/moe.py")) == "assertion"


@pytest.mark.parametrize("noise", ["INFO 11-29 10:00:00 [x.py:1] CUDA error: none\n", OOM])
def test_a_flood_changes_nothing_and_stays_bounded(noise: str) -> None:
    """What has been said often enough is not looked at again; what comes after it is."""
    flood = noise * (2 * max(_MAX_BENIGN, MAX_HITS_PER_RULE))
    found = of(flood + "RuntimeError: CUDA error: an illegal memory access was encountered\n").failure
    assert found is not None
    assert Reason.KERNEL_ERROR in (found.reason, *found.other_reasons)
    assert len(found.supporting) <= 5


def test_a_traceback_is_followed_across_the_cut_between_two_blocks() -> None:
    """The frame stands at the end of one block and the exception at the begin of the next."""
    frame = 'Traceback (most recent call last):\n  File "/opt/sglang/srt/server_args.py", line 7, in f\n'
    for padding in (128 * 1024 - len(frame), 4096 - len(frame)):
        filler = ("x" * 63 + "\n") * (padding // 64) + "y" * (padding % 64 - 1) + "\n"
        assert reason(filler + frame + "RuntimeError: odd\n") == "config_invalid"


def test_memory_does_not_grow_with_the_log() -> None:
    """A stream, read once."""

    class Endless(io.RawIOBase):
        left = 30

        def read(self, size: int = -1, /) -> bytes:
            self.left -= 1
            return b"ValueError: bad\n" * 50_000 if self.left > 0 else b""

    tracemalloc.start()
    diagnose(Endless())
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 8_000_000


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=300), exit_code=st.none() | st.integers(-100, 300))
def test_any_bytes_and_any_exit_code_have_an_answer(content: bytes, exit_code: int | None) -> None:
    """No input ends in a traceback."""
    found = diagnose(io.BytesIO(content), exit_code=exit_code)
    assert found.failure is None or found.failure.cure


def test_a_growing_file_has_an_end(tmp_path: Path) -> None:
    """Reading stops at the size that the file had when it was opened."""
    path = tmp_path / "log"
    path.write_text(READY)
    with open_log(str(path)) as opened:
        with path.open("a") as growing:
            growing.write(OOM)
        assert diagnose(opened.source, max_bytes=opened.max_bytes).failure is None


@pytest.mark.parametrize("cut", [0, 12])
def test_a_compressed_log_is_read_as_far_as_it_is_sound(cut: int, tmp_path: Path) -> None:
    """A damaged end takes nothing from what stands before it."""
    path = tmp_path / "log.gz"
    content = gzip.compress((OOM + "".join(f"{number}\n" for number in range(50_000))).encode())
    path.write_bytes(content[: len(content) - cut])
    with open_log(str(path)) as opened:
        failure = diagnose(opened.source).failure
    assert failure is not None
    assert failure.reason is Reason.GPU_OOM


@pytest.mark.parametrize("name", [".", "nowhere/at/all"])
def test_what_is_no_file_is_a_usage_error(name: str) -> None:
    """Said in one sentence, without a traceback."""
    with pytest.raises(UsageError, match="cannot be read"), open_log(name):
        pass
