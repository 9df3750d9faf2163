"""Which line of a log is the root, whom it accuses, and what is shown of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.classify import classify
from agent.outcome import Failure
from agent.reasons import Policy, Reason
from runners import Exit, Phase, RunRecord

FIXTURES = Path(__file__).parent / "fixtures"
ENV_NAMES = {"NCCL_ALGO": "nccl_algo", "NCCL_PROTO": "nccl_proto"}
FAILED = Exit(code=1)

Write = Callable[[str], str]


@pytest.fixture
def log(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "trial.log"
        path.write_text(text)
        return str(path)

    return write


def failure(end: Exit, phase: Phase = Phase.SERVE, log_path: str | None = None) -> Failure:
    record = RunRecord(exit=end, phase=phase, wall_s=1.0, log_path=log_path)
    found = classify(record, env_names=ENV_NAMES).failure
    assert found is not None
    return found


def test_the_root_on_one_rank_wins_over_what_the_others_saw(log: Write) -> None:
    text = """\
[rank0] RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:59573
[rank1] AssertionError: rows of the KV cache do not match
rank 0 ended because rank 1 failed
"""
    found = failure(FAILED, log_path=log(text))
    assert (found.reason, found.decisive and found.decisive.number) == (Reason.ASSERTION, 2)
    assert found.other_reasons == ()


def test_an_unknown_exception_is_a_root_and_a_closed_connection_is_not(log: Write) -> None:
    text = """\
[rank1] RuntimeError: the experts went on strike
[rank0] RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:59573
"""
    found = failure(FAILED, log_path=log(text))
    assert (found.reason, found.confidence, found.policy) == (Reason.UNKNOWN, 0.0, Policy.RECORD_ONLY)
    assert found.decisive is not None
    assert found.decisive.text == "RuntimeError: the experts went on strike"


def test_the_earliest_of_equal_roots_wins(log: Write) -> None:
    text = """\
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
"""
    found = failure(FAILED, log_path=log(text))
    assert (found.reason, found.other_reasons) == (Reason.GPU_OOM, (Reason.KERNEL_ERROR,))


def test_a_message_inside_a_wrapper_is_the_root(log: Write) -> None:
    wrapped = log("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1 GiB.\n")
    assert failure(FAILED, Phase.CAPTURE_GRAPHS, wrapped).reason is Reason.GPU_OOM


def test_the_variables_that_a_message_names_are_blamed() -> None:
    text = str(FIXTURES / "N001.log")
    assert failure(FAILED, Phase.CAPTURE_GRAPHS, text).blames == ("nccl_algo",)


def test_all_variables_that_a_message_names_are_blamed(log: Write) -> None:
    text = "No algorithm/protocol available for function AllReduce with datatype ncclFloat64."
    text += " NCCL_ALGO was set to NVLS. NCCL_PROTO was set to LL."
    assert failure(FAILED, log_path=log(text)).blames == ("nccl_algo", "nccl_proto")


def test_without_a_name_the_rules_own_suspects_are_blamed(log: Write) -> None:
    text = "No algorithm/protocol available for function AllReduce with datatype ncclFloat64."
    assert failure(FAILED, log_path=log(text)).blames == ("nccl_algo",)


def test_an_option_that_the_parser_refuses_is_blamed() -> None:
    assert failure(Exit(code=2), Phase.SPAWN, str(FIXTURES / "C001.log")).blames == ("draft_length",)


def test_a_cure_names_what_the_line_names() -> None:
    assert "pip install flashinfer_not_here " in failure(FAILED, log_path=str(FIXTURES / "E005.log")).cure


def test_evidence_is_bounded_and_in_the_order_of_the_log(log: Write) -> None:
    flood = "".join(f"[rank{rank}] CUDA out of memory, attempt {rank} {'x' * 900}\n" for rank in range(1000))
    found = failure(FAILED, log_path=log(flood))
    assert found.decisive is not None
    assert (found.decisive.number, len(found.decisive.text)) == (1, 500)
    assert [line.number for line in found.supporting] == [2, 3, 4, 5, 6]


def test_a_message_deep_in_a_long_line_is_shown(log: Write) -> None:
    found = failure(FAILED, log_path=log("x" * 5000 + " CUDA out of memory\n"))
    assert found.decisive is not None
    assert "CUDA out of memory" in found.decisive.text


def test_nothing_matched_shows_the_most_telling_lines(log: Write) -> None:
    text = "starting\nwarming up\nthe frobnicator cannot continue\n" + "tick\n" * 50 + "bye\n"
    found = failure(FAILED, log_path=log(text))
    assert (found.rule, found.decisive and found.decisive.number) == ("none", 3)
    assert [line.text for line in found.supporting] == ["tick", "tick", "bye"]
